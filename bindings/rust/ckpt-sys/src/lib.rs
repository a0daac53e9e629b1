//! Raw declarations of libckpt's C ABI: `raw` is written by `bindings/generate.py` from the headers. The crate `ckpt` is the safe layer.
#![allow(non_camel_case_types)]
#![allow(clippy::missing_safety_doc)]

#[rustfmt::skip]
mod raw;
pub use raw::*;
