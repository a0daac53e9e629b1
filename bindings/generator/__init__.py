"""Writes the raw layers of the bindings from the public headers, as SWIG reads them. See ../generate.py."""
