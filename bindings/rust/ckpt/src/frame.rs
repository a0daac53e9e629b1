use crate::element::{count_of, Element};
use crate::error::{Error, Result};
use crate::philox::Philox;
use crate::segment::Shape;
use crate::sys;
use std::cell::RefCell;
use std::os::raw::{c_int, c_void};

/// One execution of a segment: its code asks it for everything. Only there inside a segment's code, on the thread that called the library:
///
/// ```compile_fail
/// fn needs_send<T: Send>() {}
/// needs_send::<ckpt::Frame<'static>>();
/// ```
///
/// Arrays are as long as what was declared. An array that is not there in this execution, as nobody who is asked for now reads it, is
/// empty: work only where `needs` says so. Each may be asked for once to be written, or many times to be read, as Rust has it.
pub struct Frame<'f> {
    raw: *mut sys::ckpt_frame,
    shape: &'f Shape,
    host: bool,
    leases: RefCell<Vec<Lease>>,
}

struct Lease {
    start: usize,
    end: usize,
    written: bool,
}

/// The gradient of an input, to be written, or to be added to.
#[derive(Debug)]
pub struct Grad<'a, T> {
    pub values: &'a mut [T],
    /// Add to what is there, else write all of it.
    pub accumulate: bool,
}

/// Two arrays that may be one in memory.
#[derive(Debug)]
pub enum InPlace<'a, T> {
    /// The array holds what is to be read, and takes what is written.
    Same(&'a mut [T]),
    Apart {
        write: &'a mut [T],
        read: &'a [T],
    },
}

/// An input's gradient that may be placed over output 0's.
#[derive(Debug)]
pub enum GradPair<'a, T> {
    /// Holds the output's gradient, and takes the input's.
    Same(&'a mut [T]),
    Apart {
        /// None: not wanted.
        input: Option<Grad<'a, T>>,
        /// None: zero.
        output: Option<&'a [T]>,
    },
}

impl<'f> Frame<'f> {
    pub(crate) fn new(raw: *mut sys::ckpt_frame, shape: &'f Shape, host: bool) -> Self {
        Self { raw, shape, host, leases: RefCell::new(Vec::new()) }
    }

    pub fn as_ptr(&self) -> *mut sys::ckpt_frame {
        self.raw
    }

    /// Compute this slot now?
    pub fn needs(&self, slot: u32) -> bool {
        unsafe { sys::ckpt_frame_needs(self.raw, slot) != 0 }
    }

    pub fn needs_output(&self, output: u32) -> bool {
        unsafe { sys::ckpt_frame_needs_output(self.raw, output) != 0 }
    }

    fn bytes_of(&self, what: u32, k: u32) -> usize {
        unsafe { sys::ckpt_frame_bytes(self.raw, what, k) }
    }

    fn host(&self, name: &str, k: u32) -> Result<()> {
        if self.host {
            return Ok(());
        }
        Err(Error::argument(format!("{} {}: memory of another device than the CPU, expected {}_ptr", name, k, name)))
    }

    fn lease(&self, name: &str, k: u32, data: *const c_void, bytes: usize, written: bool) -> Result<()> {
        let (start, end) = (data as usize, data as usize + bytes);
        let mut leases = self.leases.borrow_mut();
        let clash = leases.iter().any(|lease| start < lease.end && lease.start < end && (written || lease.written));
        if clash {
            let text = format!("{} {}: its memory is in use by an array of this frame already; expected one array, or output_over_input, or input_grad_pair", name, k);
            return Err(Error::argument(text));
        }
        leases.push(Lease { start, end, written });
        Ok(())
    }

    fn read<T: Element>(&self, name: &str, what: u32, k: u32, data: *const c_void) -> Result<&[T]> {
        if data.is_null() {
            return Ok(&[]);
        }
        self.host(name, k)?;
        let bytes = self.bytes_of(what, k);
        let count = count_of::<T>(|| format!("{} {}", name, k), data as *const u8, bytes)?;
        self.lease(name, k, data, bytes, false)?;
        Ok(unsafe { std::slice::from_raw_parts(data as *const T, count) })
    }

    #[allow(clippy::mut_from_ref)] // the lease sees to it that there is one
    fn write<T: Element>(&self, name: &str, what: u32, k: u32, data: *mut c_void) -> Result<&mut [T]> {
        if data.is_null() {
            return Ok(&mut []);
        }
        self.host(name, k)?;
        let bytes = self.bytes_of(what, k);
        let count = count_of::<T>(|| format!("{} {}", name, k), data as *const u8, bytes)?;
        self.lease(name, k, data, bytes, true)?;
        Ok(unsafe { std::slice::from_raw_parts_mut(data as *mut T, count) })
    }

    pub fn slot<T: Element>(&self, slot: u32) -> Result<&[T]> {
        self.read("slot", sys::CKPT_FRAME_SLOT, slot, self.slot_ptr(slot))
    }

    /// In a backward: only of a slot that is CONSUMED.
    #[allow(clippy::mut_from_ref)]
    pub fn slot_mut<T: Element>(&self, slot: u32) -> Result<&mut [T]> {
        let flags = self.shape.slot_flags.get(slot as usize).copied().unwrap_or(0);
        if flags & sys::CKPT_SLOT_CONSUMED == 0 && self.is_backward() {
            return Err(Error::argument(format!("slot {}: written in backward, expected a slot that is marked consumed", slot)));
        }
        self.write("slot", sys::CKPT_FRAME_SLOT, slot, self.slot_ptr(slot))
    }

    pub fn output<T: Element>(&self, output: u32) -> Result<&[T]> {
        self.read("output", sys::CKPT_FRAME_OUTPUT, output, self.output_ptr(output))
    }

    #[allow(clippy::mut_from_ref)]
    pub fn output_mut<T: Element>(&self, output: u32) -> Result<&mut [T]> {
        if self.is_backward() {
            return Err(Error::argument(format!("output {}: written in backward, expected only to be read there", output)));
        }
        self.write("output", sys::CKPT_FRAME_OUTPUT, output, self.output_ptr(output))
    }

    pub fn input<T: Element>(&self, input: u32) -> Result<&[T]> {
        self.read("input", sys::CKPT_FRAME_INPUT, input, self.input_ptr(input))
    }

    /// Backward. None: zero (or a root that seeds itself).
    pub fn output_grad<T: Element>(&self, output: u32) -> Result<Option<&[T]>> {
        let data = self.output_grad_ptr(output);
        if data.is_null() {
            return Ok(None);
        }
        self.read("output_grad", sys::CKPT_FRAME_OUTPUT_GRAD, output, data).map(Some)
    }

    /// Backward. None: not wanted.
    pub fn input_grad<T: Element>(&self, input: u32) -> Result<Option<Grad<'_, T>>> {
        let (data, accumulate) = self.input_grad_ptr(input);
        if data.is_null() {
            return Ok(None);
        }
        let values = self.write("input_grad", sys::CKPT_FRAME_INPUT_GRAD, input, data)?;
        Ok(Some(Grad { values, accumulate }))
    }

    /// Backward, for an input with `grad_over_output_0`: its gradient and output 0's.
    pub fn input_grad_pair<T: Element>(&self, input: u32) -> Result<GradPair<'_, T>> {
        let (data, _) = self.input_grad_ptr(input);
        if !data.is_null() && std::ptr::eq(data, self.output_grad_ptr(0)) {
            return Ok(GradPair::Same(self.write("input_grad", sys::CKPT_FRAME_INPUT_GRAD, input, data)?));
        }
        Ok(GradPair::Apart { input: self.input_grad(input)?, output: self.output_grad(0)? })
    }

    /// Forward, for an output with `in_place_input`.
    pub fn output_over_input<T: Element>(&self, output: u32, input: u32) -> Result<InPlace<'_, T>> {
        let data = self.output_ptr(output);
        if !data.is_null() && std::ptr::eq(data, self.input_ptr(input)) {
            return Ok(InPlace::Same(self.output_mut(output)?));
        }
        Ok(InPlace::Apart { write: self.output_mut(output)?, read: self.input(input)? })
    }

    #[allow(clippy::mut_from_ref)]
    pub fn scratch<T: Element>(&self) -> Result<&mut [T]> {
        self.write("scratch", sys::CKPT_FRAME_SCRATCH, 0, self.scratch_ptr())
    }

    /// Device addresses: NULL where there is nothing now.
    pub fn slot_ptr(&self, slot: u32) -> *mut c_void {
        unsafe { sys::ckpt_frame_slot(self.raw, slot) }
    }

    pub fn output_ptr(&self, output: u32) -> *mut c_void {
        unsafe { sys::ckpt_frame_output(self.raw, output) }
    }

    pub fn input_ptr(&self, input: u32) -> *const c_void {
        unsafe { sys::ckpt_frame_input(self.raw, input) }
    }

    pub fn output_grad_ptr(&self, output: u32) -> *const c_void {
        unsafe { sys::ckpt_frame_output_grad(self.raw, output) }
    }

    /// And whether to add to what is there.
    pub fn input_grad_ptr(&self, input: u32) -> (*mut c_void, bool) {
        let mut accumulate: c_int = 0;
        let data = unsafe { sys::ckpt_frame_input_grad(self.raw, input, &mut accumulate) };
        (data, accumulate != 0)
    }

    pub fn scratch_ptr(&self) -> *mut c_void {
        unsafe { sys::ckpt_frame_scratch(self.raw) }
    }

    /// The snapshot for draws of this segment in this step: the same in first run, recompute and backward.
    pub fn random(&self, site: u32) -> Philox {
        let mut raw = sys::ckpt_philox::default();
        unsafe { sys::ckpt_frame_random(self.raw, site, &mut raw) };
        if self.host && !raw.step_word.is_null() {
            raw.subsequence = raw.subsequence.wrapping_add(unsafe { *raw.step_word });
            raw.step_word = std::ptr::null();
        }
        Philox::from_raw(&raw)
    }

    /// A replay: do not count, update or log twice.
    pub fn is_recompute(&self) -> bool {
        unsafe { sys::ckpt_frame_is_recompute(self.raw) != 0 }
    }

    pub fn is_backward(&self) -> bool {
        unsafe { sys::ckpt_frame_is_backward(self.raw) != 0 }
    }

    pub fn is_dry(&self) -> bool {
        unsafe { sys::ckpt_frame_is_dry(self.raw) != 0 }
    }

    /// This segment's place in the recording: the loop index.
    pub fn index(&self) -> u64 {
        unsafe { sys::ckpt_frame_index(self.raw) }
    }

    pub fn step(&self) -> u64 {
        unsafe { sys::ckpt_frame_step(self.raw) }
    }

    pub fn stream(&self) -> *mut c_void {
        unsafe { sys::ckpt_frame_stream(self.raw) }
    }
}
