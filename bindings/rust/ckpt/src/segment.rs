use crate::error::{c_text, carry, check, defer, Error, Result};
use crate::frame::Frame;
use crate::sys;
use std::any::Any;
use std::ffi::CString;
use std::marker::PhantomData;
use std::os::raw::c_void;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr;
use std::rc::Rc;

/// A piece of the forward pass that can be replayed. Both functions take `&self`: what they change (gradients of weights) is in cells.
pub trait Segment: 'static {
    /// First run, full and partial recomputation: asks the frame what is needed now.
    fn forward(&self, frame: &Frame<'_>) -> Result<()>;
    fn backward(&self, frame: &Frame<'_>) -> Result<()>;
    /// Host state that forward reads and moves: `SegmentBuilder::state_bytes` of it, saved before the first run, ...
    fn save_state(&self, _state: &mut [u8]) -> Result<()> {
        Ok(())
    }
    /// ... restored before each replay, and set back to what it was after it.
    fn restore_state(&self, _state: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl Segment for Box<dyn Segment> {
    fn forward(&self, frame: &Frame<'_>) -> Result<()> {
        (**self).forward(frame)
    }
    fn backward(&self, frame: &Frame<'_>) -> Result<()> {
        (**self).backward(frame)
    }
    fn save_state(&self, state: &mut [u8]) -> Result<()> {
        (**self).save_state(state)
    }
    fn restore_state(&self, state: &[u8]) -> Result<()> {
        (**self).restore_state(state)
    }
}

/// A segment of two closures, for small cases: `Closures::new(|f| ..., |f| ...)`.
pub struct Closures<F, B> {
    forward: F,
    backward: B,
}

impl<F, B> Closures<F, B>
where
    F: Fn(&Frame<'_>) -> Result<()> + 'static,
    B: Fn(&Frame<'_>) -> Result<()> + 'static,
{
    pub fn new(forward: F, backward: B) -> Self {
        Self { forward, backward }
    }
}

impl<F, B> Segment for Closures<F, B>
where
    F: Fn(&Frame<'_>) -> Result<()> + 'static,
    B: Fn(&Frame<'_>) -> Result<()> + 'static,
{
    fn forward(&self, frame: &Frame<'_>) -> Result<()> {
        (self.forward)(frame)
    }
    fn backward(&self, frame: &Frame<'_>) -> Result<()> {
        (self.backward)(frame)
    }
}

/// An intermediate of a segment. By itself the safe case: read by backward, computed from everything before it.
#[derive(Clone, Debug)]
pub struct Slot {
    pub name: String,
    pub bytes: usize,
    /// None: every earlier slot; empty: the inputs alone.
    pub reads: Option<Vec<u32>>,
    /// 0: by itself; equal numbers: one kernel makes all members.
    pub group: u32,
    pub cost_seconds: f64,
    /// `ckpt::sys::CKPT_SLOT_*`
    pub flags: u32,
}

impl Slot {
    pub fn new(name: &str, bytes: usize) -> Self {
        Self { name: name.to_string(), bytes, reads: None, group: 0, cost_seconds: 0.0, flags: 0 }
    }
    pub fn reads(mut self, slots: &[u32]) -> Self {
        self.reads = Some(slots.to_vec());
        self
    }
    pub fn group(mut self, group: u32) -> Self {
        self.group = group;
        self
    }
    pub fn cost_seconds(mut self, seconds: f64) -> Self {
        self.cost_seconds = seconds;
        self.flags |= sys::CKPT_SLOT_COST_GIVEN;
        self
    }
    pub fn flags(mut self, flags: u32) -> Self {
        self.flags |= flags;
        self
    }
}

/// What a segment gives to others.
#[derive(Clone, Debug)]
pub struct Output {
    pub name: String,
    pub bytes: usize,
    /// 0: as bytes.
    pub grad_bytes: usize,
    /// Slots that it is computed from; None: every slot.
    pub reads: Option<Vec<u32>>,
    pub group: u32,
    pub cost_seconds: f64,
    /// `ckpt::sys::CKPT_OUTPUT_*`
    pub flags: u32,
    /// 0: no; k + 1: may be placed over input k.
    pub in_place_input: u32,
    memory: *mut c_void,
}

impl Output {
    pub fn new(name: &str, bytes: usize) -> Self {
        Self {
            name: name.to_string(),
            bytes,
            grad_bytes: 0,
            reads: None,
            group: 0,
            cost_seconds: 0.0,
            flags: 0,
            in_place_input: 0,
            memory: ptr::null_mut(),
        }
    }
    pub fn grad_bytes(mut self, bytes: usize) -> Self {
        self.grad_bytes = bytes;
        self
    }
    pub fn reads(mut self, slots: &[u32]) -> Self {
        self.reads = Some(slots.to_vec());
        self
    }
    pub fn group(mut self, group: u32) -> Self {
        self.group = group;
        self
    }
    pub fn cost_seconds(mut self, seconds: f64) -> Self {
        self.cost_seconds = seconds;
        self.flags |= sys::CKPT_OUTPUT_COST_GIVEN;
        self
    }
    pub fn flags(mut self, flags: u32) -> Self {
        self.flags |= flags;
        self
    }
    pub fn in_place_input(mut self, input: u32) -> Self {
        self.in_place_input = input + 1;
        self
    }
    /// The caller's memory: never counted, always there.
    ///
    /// # Safety
    /// `bytes` of the device's memory, until the segment and all recordings with it are gone.
    pub unsafe fn memory(mut self, memory: *mut c_void) -> Self {
        self.memory = memory;
        self
    }
}

/// Slots and outputs as C has them, with what their pointers point to.
pub(crate) struct Parts {
    _names: Vec<CString>,
    pub slots: Vec<sys::ckpt_slot>,
    pub outputs: Vec<sys::ckpt_output>,
}

impl Parts {
    pub fn new(slots: &[Slot], outputs: &[Output]) -> Result<Self> {
        let mut names = Vec::with_capacity(slots.len() + outputs.len());
        for name in slots.iter().map(|slot| &slot.name).chain(outputs.iter().map(|output| &output.name)) {
            names.push(c_text("name", name)?);
        }
        // A pointer that is not NULL with count 0 says "from the inputs alone": an empty Vec's is not.
        let reads = |reads: &Option<Vec<u32>>| reads.as_ref().map_or((ptr::null(), 0), |list| (list.as_ptr(), list.len() as u32));
        let c_slots = slots.iter().zip(&names).map(|(slot, name)| sys::ckpt_slot {
            name: name.as_ptr(),
            bytes: slot.bytes,
            reads: reads(&slot.reads).0,
            read_count: reads(&slot.reads).1,
            group: slot.group,
            cost_seconds: slot.cost_seconds,
            flags: slot.flags,
            ..Default::default()
        });
        #[allow(clippy::needless_update)] // the struct may grow
        let c_outputs = outputs.iter().zip(&names[slots.len()..]).map(|(output, name)| sys::ckpt_output {
            name: name.as_ptr(),
            bytes: output.bytes,
            grad_bytes: output.grad_bytes,
            reads: reads(&output.reads).0,
            read_count: reads(&output.reads).1,
            group: output.group,
            memory: output.memory,
            cost_seconds: output.cost_seconds,
            flags: output.flags,
            in_place_input: output.in_place_input,
            ..Default::default()
        });
        Ok(Self { slots: c_slots.collect(), outputs: c_outputs.collect(), _names: names })
    }
}

/// What is known of a segment on this side of the border.
pub(crate) struct Shape {
    pub slot_flags: Vec<u32>,
    /// bytes, grad_bytes as given
    pub outputs: Vec<(usize, usize)>,
    pub state_bytes: usize,
}

/// Made once, used many times: `Tape::run`.
pub struct SegmentBuilder {
    name: String,
    slots: Vec<Slot>,
    outputs: Vec<Output>,
    input_flags: Vec<u32>,
    forward_scratch_bytes: usize,
    backward_scratch_bytes: usize,
    state_bytes: usize,
    replayable: bool,
    has_backward: bool,
}

impl SegmentBuilder {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_string(),
            slots: Vec::new(),
            outputs: Vec::new(),
            input_flags: Vec::new(),
            forward_scratch_bytes: 0,
            backward_scratch_bytes: 0,
            state_bytes: 0,
            replayable: true,
            has_backward: true,
        }
    }
    pub fn slot(mut self, slot: Slot) -> Self {
        self.slots.push(slot);
        self
    }
    pub fn output(mut self, output: Output) -> Self {
        self.outputs.push(output);
        self
    }
    /// One more input; flags: `ckpt::sys::CKPT_INPUT_*`.
    pub fn input(mut self, flags: u32) -> Self {
        self.input_flags.push(flags);
        self
    }
    pub fn scratch(mut self, forward_bytes: usize, backward_bytes: usize) -> Self {
        self.forward_scratch_bytes = forward_bytes;
        self.backward_scratch_bytes = backward_bytes;
        self
    }
    pub fn state_bytes(mut self, bytes: usize) -> Self {
        self.state_bytes = bytes;
        self
    }
    /// Code that is written inline between `Tape::begin_segment` and `end`: cannot be replayed.
    pub fn inline(mut self) -> Self {
        self.replayable = false;
        self
    }
    /// No gradient passes through.
    pub fn no_backward(mut self) -> Self {
        self.has_backward = false;
        self
    }

    pub fn build<S: Segment>(self) -> Result<SegmentDef<S>> {
        let name = c_text("name", &self.name)?;
        let parts = Parts::new(&self.slots, &self.outputs)?;
        let mut desc = sys::ckpt_segment_desc {
            name: name.as_ptr(),
            slots: parts.slots.as_ptr(),
            outputs: parts.outputs.as_ptr(),
            input_flags: self.input_flags.as_ptr(),
            slot_count: parts.slots.len() as u32,
            output_count: parts.outputs.len() as u32,
            input_count: self.input_flags.len() as u32,
            forward_scratch_bytes: self.forward_scratch_bytes,
            backward_scratch_bytes: self.backward_scratch_bytes,
            state_bytes: self.state_bytes,
            ..Default::default()
        };
        if self.replayable {
            desc.forward = Some(forward_trampoline::<S>);
        }
        if self.has_backward {
            desc.backward = Some(backward_trampoline::<S>);
        }
        if self.state_bytes > 0 {
            desc.save_state = Some(save_trampoline::<S>);
            desc.restore_state = Some(restore_trampoline::<S>);
        }
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_segment_create(&desc, &mut raw) })?;
        let shape = Shape {
            slot_flags: self.slots.iter().map(|slot| slot.flags).collect(),
            outputs: self.outputs.iter().map(|output| (output.bytes, output.grad_bytes)).collect(),
            state_bytes: self.state_bytes,
        };
        Ok(SegmentDef { handle: SegmentHandle::from_raw(raw), shape: Rc::new(shape), marker: PhantomData })
    }
}

handle! {
    /// The C object.
    SegmentHandle, ckpt_segment, ckpt_segment_destroy
}

/// A validated segment whose code is an S.
pub struct SegmentDef<S: Segment> {
    handle: SegmentHandle,
    pub(crate) shape: Rc<Shape>,
    marker: PhantomData<fn(&S)>,
}

impl<S: Segment> SegmentDef<S> {
    pub fn builder(name: &str) -> SegmentBuilder {
        SegmentBuilder::new(name)
    }

    pub fn as_ptr(&self) -> *mut sys::ckpt_segment {
        self.handle.as_ptr()
    }

    pub fn output_count(&self) -> usize {
        self.shape.outputs.len()
    }
}

/// A segment of two closures. They say the type: `closures(SegmentBuilder::new("square").input(0)..., |f| ..., |f| ...)`.
#[allow(clippy::type_complexity)]
pub fn closures<F, B>(builder: SegmentBuilder, forward: F, backward: B) -> Result<(SegmentDef<Closures<F, B>>, Rc<Closures<F, B>>)>
where
    F: Fn(&Frame<'_>) -> Result<()> + 'static,
    B: Fn(&Frame<'_>) -> Result<()> + 'static,
{
    Ok((builder.build()?, Rc::new(Closures::new(forward, backward))))
}

/// The `user` of a call: owned by the recording, until it says that it is done.
pub(crate) struct CallData<S> {
    pub segment: Rc<S>,
    pub shape: Rc<Shape>,
    pub host: bool,
    /// What watches point to.
    pub kept: Vec<(CString, Rc<dyn Any>)>,
}

fn outcome(frame: *mut sys::ckpt_frame, done: std::thread::Result<Result<()>>) -> i32 {
    let error = match done {
        Ok(Ok(())) => return 0,
        Ok(Err(error)) => error,
        Err(payload) => Error::panic(payload),
    };
    let text = CString::new(error.text().replace('\0', " ")).unwrap_or_default();
    let status = carry(error);
    if !frame.is_null() {
        unsafe { sys::ckpt_frame_fail(frame, status, text.as_ptr()) };
    }
    status
}

unsafe extern "C" fn forward_trampoline<S: Segment>(user: *mut c_void, frame: *mut sys::ckpt_frame) -> i32 {
    let data = &*(user as *const CallData<S>);
    outcome(frame, catch_unwind(AssertUnwindSafe(|| data.segment.forward(&Frame::new(frame, &data.shape, data.host)))))
}

unsafe extern "C" fn backward_trampoline<S: Segment>(user: *mut c_void, frame: *mut sys::ckpt_frame) -> i32 {
    let data = &*(user as *const CallData<S>);
    outcome(frame, catch_unwind(AssertUnwindSafe(|| data.segment.backward(&Frame::new(frame, &data.shape, data.host)))))
}

unsafe extern "C" fn save_trampoline<S: Segment>(user: *mut c_void, state: *mut c_void) -> i32 {
    let data = &*(user as *const CallData<S>);
    let state = std::slice::from_raw_parts_mut(state as *mut u8, data.shape.state_bytes);
    outcome(ptr::null_mut(), catch_unwind(AssertUnwindSafe(|| data.segment.save_state(state))))
}

unsafe extern "C" fn restore_trampoline<S: Segment>(user: *mut c_void, state: *mut c_void) -> i32 {
    let data = &*(user as *const CallData<S>);
    let state = std::slice::from_raw_parts(state as *const u8, data.shape.state_bytes);
    outcome(ptr::null_mut(), catch_unwind(AssertUnwindSafe(|| data.segment.restore_state(state))))
}

pub(crate) unsafe extern "C" fn call_release<S: Segment>(user: *mut c_void) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(Box::from_raw(user as *mut CallData<S>)))) {
        defer(payload);
    }
}
