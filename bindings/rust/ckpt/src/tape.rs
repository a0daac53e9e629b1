use crate::arena::Arena;
use crate::boundary::{reading, roots_of, Buffer, Held, Reading, Root};
use crate::call::{Call, OpenSegment};
use crate::element::Element;
use crate::error::{check, Error, Result};
use crate::json::Trace;
use crate::plan::{Chain, Patterns, Plan, Strategy};
use crate::recording::{Recording, RecordingHandle};
use crate::segment::{Segment, SegmentDef};
#[cfg(feature = "ops")]
use crate::shared::Lock;
use crate::shared::{lock, Shared};
use crate::sys;
use crate::trace::TraceFn;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::os::raw::c_void;
use std::ptr;
use std::rc::Rc;

pub type TapeStats = sys::ckpt_tape_stats;

/// How a tape is made.
#[derive(Clone, Debug, Default)]
pub struct TapeOptions {
    /// Bounds the arena's height; 0: the arena's capacity.
    pub budget_bytes: usize,
    pub seed: u64,
    pub strategy: Strategy,
    pub keep_patterns: Vec<String>,
    pub recompute_patterns: Vec<String>,
    /// Recordings alive at once; 0: 1.
    pub in_flight_count: u32,
    /// `ckpt::sys::CKPT_CHECK_*`
    pub checks: u32,
    /// A plan, once made or adopted, stays until a larger recording.
    pub replan_never: bool,
}

handle! {
    /// The C object.
    TapeHandle, ckpt_tape, ckpt_tape_destroy
}

/// Records segments and runs them in reverse, within one budget. It stays on its arena's thread:
///
/// ```compile_fail
/// fn needs_send<T: Send>() {}
/// needs_send::<ckpt::Tape>();
/// ```
pub struct Tape {
    handle: TapeHandle,
    host: bool,
    held: RefCell<Held>,
    reading: Cell<u32>,
    trace: RefCell<Option<Rc<dyn Any>>>,
}
impl Tape {
    pub fn new(arena: &Arena, options: &TapeOptions) -> Result<Self> {
        let patterns = Patterns::new(&options.keep_patterns, &options.recompute_patterns)?;
        let (strategy, k) = options.strategy.to_raw();
        let desc = sys::ckpt_tape_desc {
            checks: options.checks,
            arena: arena.as_ptr(),
            budget_bytes: options.budget_bytes,
            seed: options.seed,
            strategy,
            strategy_k: k,
            keep_patterns: patterns.keep.as_ptr(),
            recompute_patterns: patterns.recompute.as_ptr(),
            keep_pattern_count: patterns.keep.len() as u32,
            recompute_pattern_count: patterns.recompute.len() as u32,
            in_flight_count: options.in_flight_count,
            replan: if options.replan_never { sys::CKPT_REPLAN_NEVER } else { sys::CKPT_REPLAN_AUTO },
            ..Default::default()
        };
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_tape_create(&desc, &mut raw) })?;
        Ok(Self {
            handle: TapeHandle::from_raw(raw),
            host: arena.is_host(),
            held: RefCell::default(),
            reading: Cell::new(0),
            trace: RefCell::new(None),
        })
    }

    pub fn as_ptr(&self) -> *mut sys::ckpt_tape {
        self.handle.as_ptr()
    }

    pub fn is_host(&self) -> bool {
        self.host
    }

    /// What moves the arena's memory waits until nobody reads in it.
    pub(crate) fn may_move(&self) -> Result<()> {
        if self.reading.get() > 0 {
            return Err(Error::new(sys::CKPT_ERROR_BUSY, "tape: a boundary is being read, or a segment is open; expected the Reading to be dropped, or the segment to be ended, first"));
        }
        Ok(())
    }

    pub(crate) fn reading(&self) -> &Cell<u32> {
        &self.reading
    }

    /// After a failure: the caller's arrays are let go if the recording is gone.
    pub(crate) fn settle<T>(&self, done: Result<T>) -> Result<T> {
        if done.is_err() {
            let mut step = 0;
            let gone =
                unsafe { sys::ckpt_tape_get_step(self.as_ptr(), &mut step) == 0 && sys::ckpt_tape_set_step(self.as_ptr(), step) == 0 };
            if gone {
                self.let_go();
            }
        }
        done
    }

    fn let_go(&self) {
        let held = self.held.replace(Held::default());
        drop(held);
    }

    /// Random draws of the recording to come use this step.
    pub fn set_step(&self, step: u64) -> Result<()> {
        check(unsafe { sys::ckpt_tape_set_step(self.as_ptr(), step) })
    }

    pub fn step(&self) -> Result<u64> {
        let mut step = 0;
        check(unsafe { sys::ckpt_tape_get_step(self.as_ptr(), &mut step) })?;
        Ok(step)
    }

    /// Starts a recording; `key` says which plan to expect (0: unknown).
    pub fn begin(&self, key: u64) -> Result<()> {
        self.begin_with(key, 0)
    }

    /// Nothing runs: `backward` makes the plan, or refuses it with the smallest budget.
    pub fn begin_dry(&self, key: u64) -> Result<()> {
        self.begin_with(key, sys::CKPT_TAPE_DRY)
    }

    /// Only a forward pass.
    pub fn begin_no_backward(&self, key: u64) -> Result<()> {
        self.begin_with(key, sys::CKPT_TAPE_NO_BACKWARD)
    }

    fn begin_with(&self, key: u64, flags: u32) -> Result<()> {
        self.may_move()?;
        check(unsafe { sys::ckpt_tape_begin(self.as_ptr(), key, flags) })?;
        self.let_go();
        Ok(())
    }

    /// An input of the recording, and where its gradient goes (None: not wanted).
    pub fn input<T: Element>(&self, data: &Shared<T>, grad: Option<&Shared<T>>) -> Result<Buffer> {
        self.input_with(data, grad, false)
    }

    /// The gradient is added to what is there.
    pub fn input_accumulate<T: Element>(&self, data: &Shared<T>, grad: &Shared<T>) -> Result<Buffer> {
        self.input_with(data, Some(grad), true)
    }

    fn input_with<T: Element>(&self, data: &Shared<T>, grad: Option<&Shared<T>>, accumulate: bool) -> Result<Buffer> {
        if !self.host {
            return Err(Error::argument("data: host memory on a tape of another device, expected input_on_device"));
        }
        lock::as_input("data", &*data.lock())?;
        if let Some(grad) = grad {
            lock::as_grad("grad", &*grad.lock())?;
            if grad.as_ptr() == data.as_ptr() {
                return Err(Error::argument("grad is the array of data, expected one of its own"));
            }
        }
        let buffer = unsafe {
            let grad_data = grad.map_or(ptr::null_mut(), |grad| grad.as_ptr() as *mut c_void);
            self.input_on_device(data.as_ptr() as *const c_void, data.bytes(), grad_data, grad.map_or(0, |grad| grad.bytes()), accumulate)?
        };
        self.held.borrow_mut().add(data.lock(), grad.map(|grad| grad.lock()));
        Ok(buffer)
    }

    /// For a dry recording: what the input will be.
    pub fn input_dry(&self, bytes: usize, wants_grad: bool) -> Result<Buffer> {
        let grad = if wants_grad { ptr::NonNull::<u64>::dangling().as_ptr() as *mut c_void } else { ptr::null_mut() };
        // Only a dry recording takes bytes without data: anything else refuses them, so the address is never used.
        unsafe { self.input_on_device(ptr::null(), bytes.max(1), grad, 0, false) }
    }

    /// Memory of the tape's device.
    ///
    /// # Safety
    /// Valid, and unchanged, until the recording ends; `grad` (NULL: not wanted) nobody else's while a backward runs.
    pub unsafe fn input_on_device(
        &self,
        data: *const c_void,
        bytes: usize,
        grad: *mut c_void,
        grad_bytes: usize,
        accumulate: bool,
    ) -> Result<Buffer> {
        let desc = sys::ckpt_input_desc {
            flags: if accumulate { sys::CKPT_TAPE_INPUT_ACCUMULATE } else { 0 },
            data,
            bytes,
            grad,
            grad_bytes,
            ..Default::default()
        };
        let mut raw = 0;
        check(sys::ckpt_tape_input(self.as_ptr(), &desc, &mut raw))?;
        Ok(Buffer { raw, bytes, grad_bytes: if grad_bytes > 0 { grad_bytes } else { bytes } })
    }

    /// One use of a segment: `tape.call(&def, &layer, &[x]).run()`.
    pub fn call<'t, S: Segment>(&'t self, def: &'t SegmentDef<S>, segment: &Rc<S>, inputs: &'t [Buffer]) -> Call<'t, S> {
        Call::new(self, def, segment, inputs)
    }

    /// Runs a segment; its outputs.
    pub fn run<S: Segment>(&self, def: &SegmentDef<S>, segment: &Rc<S>, inputs: &[Buffer]) -> Result<Vec<Buffer>> {
        self.call(def, segment, inputs).run()
    }

    /// Runs a segment with one output.
    pub fn run_one<S: Segment>(&self, def: &SegmentDef<S>, segment: &Rc<S>, inputs: &[Buffer]) -> Result<Buffer> {
        let outputs = self.run(def, segment, inputs)?;
        match outputs[..] {
            [one] => Ok(one),
            _ => Err(Error::argument(format!("segment has {} outputs, expected 1 (run gives all)", outputs.len()))),
        }
    }

    /// Begins a segment whose code is written inline, up to `end`.
    pub fn begin_segment<'t, S: Segment>(
        &'t self,
        def: &'t SegmentDef<S>,
        segment: &Rc<S>,
        inputs: &'t [Buffer],
    ) -> Result<OpenSegment<'t>> {
        self.call(def, segment, inputs).begin()
    }

    /// No later segment names this boundary, and nobody will read it.
    pub fn release(&self, buffer: Buffer) -> Result<()> {
        self.may_move()?;
        check(unsafe { sys::ckpt_tape_release(self.as_ptr(), buffer.raw) })
    }

    /// A boundary's data, brought back if need be.
    pub fn read<T: Element>(&self, buffer: Buffer) -> Result<Reading<'_, T>> {
        let data = self.read_ptr(buffer)?;
        reading(buffer, self.host, data, &self.reading)
    }

    /// Its device address, until `release` or backward.
    pub fn read_ptr(&self, buffer: Buffer) -> Result<*const c_void> {
        self.may_move()?;
        let mut data = ptr::null();
        let done = check(unsafe { sys::ckpt_tape_read(self.as_ptr(), buffer.raw, &mut data) });
        self.settle(done)?;
        Ok(data)
    }

    /// Drops what is recorded.
    pub fn reset(&self) -> Result<()> {
        self.may_move()?;
        check(unsafe { sys::ckpt_tape_reset(self.as_ptr()) })?;
        self.let_go();
        Ok(())
    }

    /// Runs the recording in reverse from these outputs; it is gone afterwards.
    pub fn backward(&self, roots: &[Root<'_>]) -> Result<()> {
        self.backward_with(roots, 0)
    }

    /// The recording stays for another backward.
    pub fn backward_retain(&self, roots: &[Root<'_>]) -> Result<()> {
        self.backward_with(roots, sys::CKPT_BACKWARD_RETAIN)
    }

    fn backward_with(&self, roots: &[Root<'_>], flags: u32) -> Result<()> {
        self.may_move()?;
        let (outputs, grads) = roots_of(roots, self.host)?;
        let locked = self.held.borrow().lock_grads()?;
        let status = unsafe { sys::ckpt_backward(self.as_ptr(), outputs.as_ptr(), grads.as_ptr(), outputs.len() as u32, flags) };
        drop(locked);
        if status == 0 && flags & sys::CKPT_BACKWARD_RETAIN == 0 {
            self.let_go();
        }
        let done = check(status);
        self.settle(done)
    }

    /// Takes the finished forward pass off the tape.
    pub fn detach(&self) -> Result<Recording> {
        self.may_move()?;
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_tape_detach(self.as_ptr(), &mut raw) })?;
        Ok(Recording {
            handle: RecordingHandle::from_raw(raw),
            host: self.host,
            held: RefCell::new(self.held.replace(Held::default())),
            reading: Cell::new(0),
        })
    }

    /// The cost model of a known recording, with the costs measured so far.
    pub fn chain(&self, key: u64) -> Result<Chain> {
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_tape_chain(self.as_ptr(), key, &mut raw) })?;
        Ok(Chain::from_raw(raw))
    }

    /// The plan in use for a known recording.
    pub fn plan(&self, key: u64) -> Result<Plan> {
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_tape_plan(self.as_ptr(), key, &mut raw) })?;
        Ok(Plan::from_raw(raw))
    }

    /// Uses this plan for `key` from the next recording on.
    pub fn adopt(&self, key: u64, plan: &Plan) -> Result<()> {
        check(unsafe { sys::ckpt_tape_adopt(self.as_ptr(), key, plan.as_ptr()) })
    }

    /// Does beforehand all that a step with this key would have to do but for the work itself.
    pub fn prepare(&self, key: u64) -> Result<()> {
        self.may_move()?;
        check(unsafe { sys::ckpt_tape_prepare(self.as_ptr(), key) })
    }

    /// Says that a captured step of this tape is launched next (CUDA): writes its step's word, and moves the step on.
    pub fn replay(&self) -> Result<()> {
        self.may_move()?;
        check(unsafe { sys::ckpt_tape_replay(self.as_ptr()) })
    }

    pub fn stats(&self) -> Result<TapeStats> {
        let mut stats = TapeStats::default();
        check(unsafe { sys::ckpt_tape_get_stats(self.as_ptr(), &mut stats) })?;
        Ok(stats)
    }

    /// Calls this at each change of memory. None ends it.
    pub fn set_trace(&self, trace: Option<TraceFn>) -> Result<()> {
        let kept = trace.map(crate::trace::keep);
        let (function, user) = match &kept {
            None => (None, ptr::null_mut()),
            Some(kept) => (Some(crate::trace::trampoline as sys::ckpt_trace_fn), crate::trace::user_of(kept)),
        };
        check(unsafe { sys::ckpt_tape_set_trace(self.as_ptr(), function, user) })?;
        self.trace.replace(kept.map(|kept| kept as Rc<dyn Any>));
        Ok(())
    }

    /// Records this tape's events, with times.
    pub fn attach_trace(&self, trace: &Rc<Trace>) -> Result<()> {
        check(unsafe { sys::ckpt_trace_attach(trace.as_ptr(), self.as_ptr()) })?;
        self.trace.replace(Some(trace.clone() as Rc<dyn Any>));
        Ok(())
    }

    #[cfg(feature = "ops")]
    pub(crate) fn boundary(&self, raw: u64, bytes: usize) -> Buffer {
        Buffer { raw, bytes, grad_bytes: bytes }
    }

    #[cfg(feature = "ops")]
    pub(crate) fn hold(&self, data: Rc<dyn Lock>) {
        self.held.borrow_mut().add(data, None);
    }

    /// Once for a recording, however often it is used.
    #[cfg(feature = "ops")]
    pub(crate) fn keep(&self, object: Rc<dyn Any>) {
        let kept = &mut self.held.borrow_mut().kept;
        if !kept.iter().any(|known| Rc::as_ptr(known) as *const () == Rc::as_ptr(&object) as *const ()) {
            kept.push(object);
        }
    }

    #[cfg(feature = "ops")]
    pub(crate) fn ready(&self) -> Result<()> {
        self.may_move()
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        unsafe { sys::ckpt_tape_set_trace(self.as_ptr(), None, ptr::null_mut()) };
    }
}
