//! Boundaries: their names, their data, and the caller's arrays that a recording uses.
use crate::element::{count_of, Element};
use crate::error::{Error, Result};
use crate::shared::{lock, Lock};
use crate::sys;
#[cfg(feature = "ops")]
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::raw::c_void;
use std::ptr;
use std::rc::Rc;

/// A boundary: a tensor that passes between segments. Stale ones are errors, never wrong tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    pub(crate) raw: u64,
    pub(crate) bytes: usize,
    pub(crate) grad_bytes: usize,
}

impl Buffer {
    /// # Safety
    /// The boundary and its gradient have these bytes.
    pub unsafe fn from_raw(raw: u64, bytes: usize, grad_bytes: usize) -> Self {
        Self { raw, bytes, grad_bytes }
    }

    pub fn as_raw(&self) -> u64 {
        self.raw
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn grad_bytes(&self) -> usize {
        self.grad_bytes
    }
}

/// An output that a backward begins from.
#[derive(Clone, Copy, Debug)]
pub struct Root<'a> {
    buffer: Buffer,
    grad: *const c_void,
    bytes: Option<usize>,
    marker: PhantomData<&'a [u8]>,
}

impl<'a> Root<'a> {
    /// Its segment seeds itself: `Frame::output_grad` gives None.
    pub fn seeds_itself(buffer: Buffer) -> Self {
        Self { buffer, grad: ptr::null(), bytes: None, marker: PhantomData }
    }

    pub fn new<T: Element>(buffer: Buffer, grad: &'a [T]) -> Self {
        Self { buffer, grad: grad.as_ptr() as *const c_void, bytes: Some(std::mem::size_of_val(grad)), marker: PhantomData }
    }

    /// # Safety
    /// The boundary's gradient, in the memory of the tape's device.
    pub unsafe fn on_device(buffer: Buffer, grad: *const c_void) -> Self {
        Self { buffer, grad, bytes: None, marker: PhantomData }
    }
}
/// The caller's arrays that a recording uses.
#[derive(Default)]
pub(crate) struct Held {
    data: Vec<Rc<dyn Lock>>,
    grads: Vec<Rc<dyn Lock>>,
    /// Layers and models.
    #[cfg(feature = "ops")]
    pub kept: Vec<Rc<dyn Any>>,
}

impl Held {
    pub fn add(&mut self, data: Rc<dyn Lock>, grad: Option<Rc<dyn Lock>>) {
        lock::add(data.read(), 1);
        self.data.push(data);
        if let Some(grad) = &grad {
            lock::add(grad.granted(), 1);
        }
        self.grads.extend(grad);
    }

    /// While a backward runs nobody else reads or writes what it writes to.
    pub fn lock_grads(&self) -> Result<GradLock> {
        if self.grads.iter().any(|grad| grad.written().get() > 0) {
            return Err(Error::new(sys::CKPT_ERROR_BUSY, "grad: another backward that is running writes to this array"));
        }
        for grad in &self.grads {
            lock::add(grad.written(), 1);
        }
        Ok(GradLock(self.grads.clone()))
    }
}

pub(crate) struct GradLock(Vec<Rc<dyn Lock>>);

impl Drop for GradLock {
    fn drop(&mut self) {
        for grad in &self.0 {
            lock::add(grad.written(), -1);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for data in &self.data {
            lock::add(data.read(), -1);
        }
        for grad in &self.grads {
            lock::add(grad.granted(), -1);
        }
    }
}

/// A boundary's data, held until this is dropped.
pub struct Reading<'t, T> {
    values: &'t [T],
    count: &'t Cell<u32>,
}

impl<T> Deref for Reading<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.values
    }
}

impl<T> Drop for Reading<'_, T> {
    fn drop(&mut self) {
        self.count.set(self.count.get() - 1);
    }
}

pub(crate) fn reading<'t, T: Element>(buffer: Buffer, host: bool, data: *const c_void, count: &'t Cell<u32>) -> Result<Reading<'t, T>> {
    if !host {
        return Err(Error::argument("buffer: memory of another device than the CPU, expected read_ptr"));
    }
    if data.is_null() {
        return Err(Error::new(sys::CKPT_ERROR_STATE, format!("buffer {:#x}: no data in a dry recording", buffer.raw)));
    }
    let len = count_of::<T>(|| "buffer".to_string(), data as *const u8, buffer.bytes)?;
    count.set(count.get() + 1);
    Ok(Reading { values: unsafe { std::slice::from_raw_parts(data as *const T, len) }, count })
}

/// outputs and output_grads, checked.
pub(crate) fn roots_of(roots: &[Root<'_>], host: bool) -> Result<(Vec<u64>, Vec<*const c_void>)> {
    for (k, root) in roots.iter().enumerate() {
        if let Some(bytes) = root.bytes {
            if !host {
                return Err(Error::argument(format!(
                    "output_grads[{}]: host memory on a tape of another device, expected Root::on_device",
                    k
                )));
            }
            if bytes != root.buffer.grad_bytes {
                return Err(Error::argument(format!("output_grads[{}] has {} bytes, expected {}", k, bytes, root.buffer.grad_bytes)));
            }
        }
    }
    Ok((roots.iter().map(|root| root.buffer.raw).collect(), roots.iter().map(|root| root.grad).collect()))
}
