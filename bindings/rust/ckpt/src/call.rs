//! One use of a segment, whole or begun and ended by hand.
use crate::boundary::Buffer;
use crate::element::Element;
use crate::error::{c_text, carry, check, Error, Result, FAILED};
use crate::frame::Frame;
use crate::segment::{call_release, CallData, Segment, SegmentDef, Shape};
use crate::shared::{lock, Shared};
use crate::sys;
use crate::tape::Tape;
use std::ffi::CString;
use std::os::raw::c_void;
use std::ptr;
use std::rc::Rc;

/// A use of a segment that is being put together.
#[must_use]
pub struct Call<'t, S: Segment> {
    tape: &'t Tape,
    def: &'t SegmentDef<S>,
    inputs: &'t [Buffer],
    data: Box<CallData<S>>,
    slot_bytes: Option<&'t [usize]>,
    output_bytes: Option<&'t [usize]>,
    watch: Vec<sys::ckpt_watch>,
    wrong: Option<Error>,
}

impl<'t, S: Segment> Call<'t, S> {
    pub(crate) fn new(tape: &'t Tape, def: &'t SegmentDef<S>, segment: &Rc<S>, inputs: &'t [Buffer]) -> Self {
        let data = CallData { segment: segment.clone(), shape: def.shape.clone(), host: tape.is_host(), kept: Vec::new() };
        Call { tape, def, inputs, data: Box::new(data), slot_bytes: None, output_bytes: None, watch: Vec::new(), wrong: None }
    }

    /// Sizes of the slots in this call.
    pub fn slot_bytes(mut self, bytes: &'t [usize]) -> Self {
        self.slot_bytes = Some(bytes);
        self
    }

    pub fn output_bytes(mut self, bytes: &'t [usize]) -> Self {
        self.output_bytes = Some(bytes);
        self
    }

    /// Memory that the segment reads beside its inputs: hashed under CKPT_CHECK_INPUTS.
    pub fn watch<T: Element>(mut self, name: &str, memory: &Shared<T>) -> Self {
        match c_text("watch name", name) {
            Err(error) => self.wrong = Some(error),
            Ok(name) => {
                self.watch.push(sys::ckpt_watch { name: name.as_ptr(), data: memory.as_ptr() as *const c_void, bytes: memory.bytes() });
                self.data.kept.push((name, Rc::new(memory.clone())));
            }
        }
        self
    }

    fn checked(&mut self) -> Result<()> {
        if let Some(error) = self.wrong.take() {
            return Err(error);
        }
        let shape = &self.def.shape;
        for (name, given, expected) in
            [("slot_bytes", self.slot_bytes, shape.slot_flags.len()), ("output_bytes", self.output_bytes, shape.outputs.len())]
        {
            if let Some(given) = given {
                if given.len() != expected {
                    return Err(Error::argument(format!("{} has {} sizes, expected {}", name, given.len(), expected)));
                }
            }
        }
        self.tape.may_move()
    }

    /// The C call, whose user owns the data. `inputs` holds the buffers' numbers.
    fn into_raw(self, inputs: &mut Vec<u64>) -> (sys::ckpt_call, Vec<sys::ckpt_watch>) {
        inputs.extend(self.inputs.iter().map(|input| input.raw));
        let call = sys::ckpt_call {
            input_count: inputs.len() as u32,
            user: Box::into_raw(self.data) as *mut c_void,
            release: Some(call_release::<S>),
            inputs: inputs.as_ptr(),
            slot_bytes: self.slot_bytes.map_or(ptr::null(), |bytes| bytes.as_ptr()),
            output_bytes: self.output_bytes.map_or(ptr::null(), |bytes| bytes.as_ptr()),
            watch: self.watch.as_ptr(),
            watch_count: self.watch.len() as u32,
            ..Default::default()
        };
        (call, self.watch)
    }

    pub fn run(mut self) -> Result<Vec<Buffer>> {
        self.checked()?;
        let (tape, def, output_bytes) = (self.tape, self.def, self.output_bytes);
        let mut raw_outputs = vec![0u64; def.shape.outputs.len()];
        let mut inputs = Vec::with_capacity(self.inputs.len());
        let (call, _watch) = self.into_raw(&mut inputs);
        let done = check(unsafe { sys::ckpt_segment_run(tape.as_ptr(), def.as_ptr(), &call, raw_outputs.as_mut_ptr()) });
        tape.settle(done)?;
        Ok(buffers(&def.shape, output_bytes, &raw_outputs))
    }

    pub fn begin(mut self) -> Result<OpenSegment<'t>> {
        self.checked()?;
        let (tape, def, output_bytes) = (self.tape, self.def, self.output_bytes);
        let mut inputs = Vec::with_capacity(self.inputs.len());
        let (call, _watch) = self.into_raw(&mut inputs);
        let mut raw = ptr::null_mut();
        let done = check(unsafe { sys::ckpt_segment_begin(tape.as_ptr(), def.as_ptr(), &call, &mut raw) });
        tape.settle(done)?;
        lock::add(tape.reading(), 1);
        Ok(OpenSegment { tape, shape: &def.shape, output_bytes, frame: Frame::new(raw, &def.shape, tape.is_host()), open: true })
    }
}

/// A gradient's size follows its output's unless grad_bytes was given.
fn buffers(shape: &Shape, output_bytes: Option<&[usize]>, raw: &[u64]) -> Vec<Buffer> {
    let sized = |(k, (&raw, &(bytes, grad_bytes))): (usize, (&u64, &(usize, usize)))| {
        let bytes = output_bytes.map_or(bytes, |sizes| sizes[k]);
        Buffer { raw, bytes, grad_bytes: if grad_bytes > 0 { grad_bytes } else { bytes } }
    };
    raw.iter().zip(&shape.outputs).enumerate().map(sized).collect()
}

/// A segment between begin and end. Dropped without `end` it is abandoned, and the recording with it.
#[must_use]
pub struct OpenSegment<'t> {
    tape: &'t Tape,
    shape: &'t Shape,
    output_bytes: Option<&'t [usize]>,
    frame: Frame<'t>,
    open: bool,
}

impl<'t> OpenSegment<'t> {
    pub fn frame(&self) -> &Frame<'t> {
        &self.frame
    }

    fn close(&mut self) {
        self.open = false;
        lock::add(self.tape.reading(), -1);
    }

    pub fn end(mut self) -> Result<Vec<Buffer>> {
        self.close();
        let mut raw = vec![0u64; self.shape.outputs.len()];
        let done = check(unsafe { sys::ckpt_segment_end(self.frame.as_ptr(), 0, raw.as_mut_ptr()) });
        self.tape.settle(done)?;
        Ok(buffers(self.shape, self.output_bytes, &raw))
    }

    /// Abandons segment and recording; the error, with its text.
    pub fn fail(mut self, error: Error) -> Error {
        self.close();
        let text = CString::new(error.text().replace('\0', " ")).unwrap_or_default();
        let status = carry(error);
        let done = unsafe {
            sys::ckpt_frame_fail(self.frame.as_ptr(), status, text.as_ptr());
            check(sys::ckpt_segment_end(self.frame.as_ptr(), status, ptr::null_mut()))
        };
        match self.tape.settle(done) {
            Err(error) => error,
            Ok(()) => Error::new(sys::CKPT_ERROR_INTERNAL, "a segment that failed ended well"),
        }
    }
}

impl Drop for OpenSegment<'_> {
    fn drop(&mut self) {
        if self.open {
            self.close();
            let done = check(unsafe { sys::ckpt_segment_end(self.frame.as_ptr(), FAILED, ptr::null_mut()) });
            let _ = self.tape.settle(done);
        }
    }
}
