//! Layers (libckpt_ops): kernels on slices, segments made of them, and a GPT made of those.
mod attention;
mod kernels;
mod layer;

pub use kernels::*;
pub use layer::*;

use crate::device::{Device, Stream};
use crate::error::{check_with, text_of, Error, Result};
use crate::sys;
use std::ptr;

handle! {
    /// The C object.
    OpsHandle, ckpt_ops, ckpt_ops_destroy
}

// Calls from several threads take turns.
unsafe impl Send for OpsHandle {}
unsafe impl Sync for OpsHandle {}

/// The kernels of one device, with threads of their own.
#[derive(Debug)]
pub struct Ops {
    handle: OpsHandle,
    host: bool,
    element_bytes: usize,
}

pub type OpsInfo = sys::ckpt_ops_info;

pub(crate) fn check_ops(status: i32) -> Result<()> {
    check_with(status, sys::ckpt_ops_last_error)
}

impl Ops {
    /// On the CPU. thread_count 0: all there are. isa: `ckpt::sys::CKPT_ISA_*`.
    pub fn new(thread_count: u32, isa: u32) -> Result<Self> {
        Self::create(sys::ckpt_ops_desc { thread_count, isa, ..Default::default() }, true)
    }

    /// On a device. dtype: `ckpt::sys::CKPT_DTYPE_*`.
    ///
    /// # Safety
    /// The stream is the device's, and outlives the handle, its layers and models.
    pub unsafe fn on_device(device: &Device, stream: &Stream, dtype: u32) -> Result<Self> {
        let desc = sys::ckpt_ops_desc { dtype, device: device.as_ptr(), stream: stream.as_ptr(), ..Default::default() };
        Self::create(desc, device.is_host()?)
    }

    fn create(desc: sys::ckpt_ops_desc, host: bool) -> Result<Self> {
        let mut raw = ptr::null_mut();
        check_ops(unsafe { sys::ckpt_ops_create(&desc, &mut raw) })?;
        let element_bytes = if desc.dtype == sys::CKPT_DTYPE_FLOAT32 { 4 } else { 2 };
        Ok(Self { handle: OpsHandle::from_raw(raw), host, element_bytes })
    }

    pub fn as_ptr(&self) -> *mut sys::ckpt_ops {
        self.handle.as_ptr()
    }

    pub fn info(&self) -> Result<OpsInfo> {
        let mut info = OpsInfo::default();
        check_ops(unsafe { sys::ckpt_ops_get_info(self.as_ptr(), &mut info) })?;
        Ok(info)
    }

    /// "avx2", and the BLAS.
    pub fn names(&self) -> Result<(String, String)> {
        let info = self.info()?;
        Ok((text_of(info.isa.as_ptr()).to_string(), text_of(info.blas.as_ptr()).to_string()))
    }

    /// Waits for the stream, then tells what only the device could see.
    pub fn check(&self) -> Result<()> {
        check_ops(unsafe { sys::ckpt_ops_check(self.as_ptr()) })
    }

    /// The kernels below take slices: host memory.
    fn slices(&self) -> Result<()> {
        if self.host {
            return Ok(());
        }
        Err(Error::argument("ops: slices with a handle of another device than the CPU, expected ckpt::sys's functions"))
    }
}
