"""The C API as it is: every function, struct and constant of include/ckpt, made by SWIG. Their documentation is the headers'."""
from typing import Any

def __getattr__(name: str) -> Any: ...
