//! libckpt for Rust: spend compute instead of memory, within a budget in bytes, with gradients that are bit-identical to those of a
//! run that stores everything.
//!
//! A [`Segment`] is a piece of the forward pass that can be replayed. A [`Tape`] records segments and runs them in reverse within its
//! budget. Code of a segment asks its [`Frame`] for everything. Errors, and panics in callbacks, come back as [`Error`].
//!
//! ```
//! use ckpt::{closures, Arena, ArenaOptions, Device, Output, Root, SegmentBuilder, Shared, Tape, TapeOptions};
//!
//! # fn main() -> ckpt::Result<()> {
//! let arena = Arena::new(&Device::cpu()?, ArenaOptions::new())?;
//! let tape = Tape::new(&arena, &TapeOptions::default())?;
//! let (square, code) = closures(
//!     SegmentBuilder::new("square").input(0).output(Output::new("out", 8)),
//!     |f| {
//!         let (x, out) = (f.input::<f64>(0)?, f.output_mut::<f64>(0)?);
//!         if f.needs_output(0) {
//!             out[0] = x[0] * x[0];
//!         }
//!         Ok(())
//!     },
//!     |f| {
//!         let (x, out_grad) = (f.input::<f64>(0)?, f.output_grad::<f64>(0)?);
//!         if let (Some(grad), Some(out_grad)) = (f.input_grad::<f64>(0)?, out_grad) {
//!             let value = 2.0 * x[0] * out_grad[0];
//!             grad.values[0] = if grad.accumulate { grad.values[0] + value } else { value };
//!         }
//!         Ok(())
//!     },
//! )?;
//! let (x, x_grad) = (Shared::from(vec![3.0]), Shared::from(vec![0.0]));
//! let input = tape.input(&x, Some(&x_grad))?;
//! let y = tape.run_one(&square, &code, &[input])?;
//! let z = tape.run_one(&square, &code, &[y])?;
//! tape.backward(&[Root::new(z, &[1.0])])?;
//! assert_eq!(x_grad.get(0), 4.0 * 27.0);
//! # Ok(())
//! # }
//! ```
pub use ckpt_sys as sys;

#[macro_use]
mod macros;
mod arena;
mod boundary;
mod call;
mod device;
mod element;
mod error;
mod estimate;
mod frame;
mod json;
#[cfg(feature = "ops")]
pub mod ops;
mod pack;
mod philox;
mod plan;
mod recording;
mod schedule;
mod segment;
mod shared;
mod tape;
mod trace;

pub use arena::*;
pub use boundary::{Buffer, Reading, Root};
pub use call::{Call, OpenSegment};
pub use device::*;
pub use element::Element;
pub use error::{Error, Result, FAILED, PANICKED};
pub use estimate::*;
pub use frame::{Frame, Grad, GradPair, InPlace};
pub use json::*;
pub use pack::*;
pub use philox::*;
pub use plan::*;
pub use recording::{Recording, RecordingHandle};
pub use schedule::*;
pub use segment::{closures, Closures, Output, Segment, SegmentBuilder, SegmentDef, SegmentHandle, Slot};
pub use shared::Shared;
pub use tape::*;
pub use trace::{TraceEvent, TraceFn};

/// Of the library that runs, "0.1.0".
pub fn version() -> &'static str {
    error::text_of(unsafe { sys::ckpt_version_string() })
}

/// major * 1000000 + minor * 1000 + patch
pub fn version_number() -> u32 {
    unsafe { sys::ckpt_version() }
}
