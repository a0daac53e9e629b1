use crate::error::{check, Error, Result};
use crate::sys;
use std::mem::size_of;

pub type PackBuffer = sys::ckpt_pack_buffer;
pub type PackResult = sys::ckpt_pack_result;

#[derive(Clone, Copy, Debug, Default)]
pub struct PackOptions {
    /// 0: 1
    pub alignment_bytes: usize,
    /// A height that is low enough; 0: none, the lowest is looked for.
    pub capacity_bytes: usize,
    /// 0: a few seconds' worth.
    pub work_limit: u64,
}

/// Offsets of buffers, in their order, and what is known of the height.
#[derive(Clone, Debug)]
pub struct Packing {
    pub offsets: Vec<usize>,
    pub result: PackResult,
}

/// A capacity that was not reached: the error, and the lowest packing found.
#[derive(Debug)]
pub struct PackError {
    pub error: Error,
    pub best: Option<Packing>,
}

/// Offsets for buffers whose lifetimes are known.
pub fn pack(buffers: &[PackBuffer], options: &PackOptions) -> std::result::Result<Packing, PackError> {
    let desc = sys::ckpt_pack_desc {
        buffer_size: size_of::<PackBuffer>() as u32,
        buffers: buffers.as_ptr(),
        buffer_count: buffers.len(),
        alignment_bytes: options.alignment_bytes,
        capacity_bytes: options.capacity_bytes,
        work_limit: options.work_limit,
        ..Default::default()
    };
    let mut packing = Packing { offsets: vec![0; buffers.len()], result: PackResult::default() };
    let status = unsafe { sys::ckpt_pack(&desc, packing.offsets.as_mut_ptr(), &mut packing.result) };
    match check(status) {
        Ok(()) => Ok(packing),
        Err(error) => Err(PackError { best: if status == sys::CKPT_ERROR_BUDGET { Some(packing) } else { None }, error }),
    }
}

/// Offsets and height; an error where a capacity is not reached.
pub fn pack_lowest(buffers: &[PackBuffer]) -> Result<Packing> {
    pack(buffers, &PackOptions::default()).map_err(|failed| failed.error)
}
