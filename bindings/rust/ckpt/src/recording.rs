use crate::boundary::{reading, roots_of, Buffer, Held, Reading, Root};
use crate::element::Element;
use crate::error::{check, Error, Result};
use crate::sys;
use std::cell::{Cell, RefCell};
use std::os::raw::c_void;
use std::ptr;

handle! {
    /// The C object.
    RecordingHandle, ckpt_recording, ckpt_recording_destroy
}

/// A finished forward pass, off its tape.
pub struct Recording {
    pub(crate) handle: RecordingHandle,
    pub(crate) host: bool,
    pub(crate) held: RefCell<Held>,
    pub(crate) reading: Cell<u32>,
}

impl Recording {
    pub fn as_ptr(&self) -> *mut sys::ckpt_recording {
        self.handle.as_ptr()
    }

    fn may_move(&self) -> Result<()> {
        if self.reading.get() > 0 {
            return Err(Error::new(sys::CKPT_ERROR_BUSY, "recording: a boundary is being read, expected its Reading to be dropped first"));
        }
        Ok(())
    }

    pub fn backward(&self, roots: &[Root<'_>]) -> Result<()> {
        self.backward_with(roots, 0)
    }

    pub fn backward_retain(&self, roots: &[Root<'_>]) -> Result<()> {
        self.backward_with(roots, sys::CKPT_BACKWARD_RETAIN)
    }

    fn backward_with(&self, roots: &[Root<'_>], flags: u32) -> Result<()> {
        self.may_move()?;
        let (outputs, grads) = roots_of(roots, self.host)?;
        let locked = self.held.borrow().lock_grads()?;
        let status = unsafe { sys::ckpt_recording_backward(self.as_ptr(), outputs.as_ptr(), grads.as_ptr(), outputs.len() as u32, flags) };
        drop(locked);
        if status == 0 && flags & sys::CKPT_BACKWARD_RETAIN == 0 {
            drop(self.held.replace(Held::default()));
        }
        check(status)
    }

    /// A boundary's data, brought back if need be.
    pub fn read<T: Element>(&self, buffer: Buffer) -> Result<Reading<'_, T>> {
        let data = self.read_ptr(buffer)?;
        reading(buffer, self.host, data, &self.reading)
    }

    pub fn read_ptr(&self, buffer: Buffer) -> Result<*const c_void> {
        self.may_move()?;
        let mut data = ptr::null();
        check(unsafe { sys::ckpt_recording_read(self.as_ptr(), buffer.raw, &mut data) })?;
        Ok(data)
    }
}
