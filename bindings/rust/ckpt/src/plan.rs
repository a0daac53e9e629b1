use crate::error::{c_text, check, take_text, text_of, Error, Result};
use crate::segment::{Output, Parts, Slot};
use crate::sys;
use std::ffi::CString;
use std::fmt;
use std::mem::size_of;
use std::os::raw::c_char;
use std::ptr;
use std::str::FromStr;

pub type Action = sys::ckpt_action;
pub type PlanSummary = sys::ckpt_plan_summary;
pub type Placement = sys::ckpt_placement;
pub type CurvePoint = sys::ckpt_curve_point;
pub type Explanation = sys::ckpt_explanation;

/// How a program is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The fastest program found that fits the budget.
    #[default]
    Auto,
    StoreAll,
    EverySegment,
    Sqrt,
    Uniform(u32),
    Block(u32),
    Full,
    /// Keeps or recomputes slots by name pattern.
    Selective,
}

impl Strategy {
    pub(crate) fn to_raw(self) -> (u32, u32) {
        match self {
            Strategy::Auto => (sys::CKPT_STRATEGY_AUTO, 0),
            Strategy::StoreAll => (sys::CKPT_STRATEGY_STORE_ALL, 0),
            Strategy::EverySegment => (sys::CKPT_STRATEGY_EVERY_SEGMENT, 0),
            Strategy::Sqrt => (sys::CKPT_STRATEGY_SQRT, 0),
            Strategy::Uniform(k) => (sys::CKPT_STRATEGY_UNIFORM, k),
            Strategy::Block(k) => (sys::CKPT_STRATEGY_BLOCK, k),
            Strategy::Full => (sys::CKPT_STRATEGY_FULL, 0),
            Strategy::Selective => (sys::CKPT_STRATEGY_SELECTIVE, 0),
        }
    }

    fn from_raw(strategy: u32, k: u32) -> Self {
        match strategy {
            sys::CKPT_STRATEGY_STORE_ALL => Strategy::StoreAll,
            sys::CKPT_STRATEGY_EVERY_SEGMENT => Strategy::EverySegment,
            sys::CKPT_STRATEGY_SQRT => Strategy::Sqrt,
            sys::CKPT_STRATEGY_UNIFORM => Strategy::Uniform(k),
            sys::CKPT_STRATEGY_BLOCK => Strategy::Block(k),
            sys::CKPT_STRATEGY_FULL => Strategy::Full,
            sys::CKPT_STRATEGY_SELECTIVE => Strategy::Selective,
            _ => Strategy::Auto,
        }
    }

    /// Without k.
    pub fn name(self) -> &'static str {
        text_of(unsafe { sys::ckpt_strategy_name(self.to_raw().0) })
    }
}

impl FromStr for Strategy {
    type Err = Error;
    /// "auto", "store_all", "uniform:4", ...
    fn from_str(text: &str) -> Result<Self> {
        let text = c_text("strategy", text)?;
        let (mut strategy, mut k) = (0, 0);
        check(unsafe { sys::ckpt_strategy_parse(text.as_ptr(), &mut strategy, &mut k) })?;
        Ok(Self::from_raw(strategy, k))
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strategy::Uniform(k) | Strategy::Block(k) => write!(f, "{}:{}", self.name(), k),
            _ => f.write_str(self.name()),
        }
    }
}

/// A class of programs, "sigma+s+w": `ckpt::sys::CKPT_CLASS_*`.
pub fn class_parse(name: &str) -> Result<u32> {
    let name = c_text("class", name)?;
    let mut class = 0;
    check(unsafe { sys::ckpt_class_parse(name.as_ptr(), &mut class) })?;
    Ok(class)
}

pub fn class_name(class: u32) -> &'static str {
    text_of(unsafe { sys::ckpt_class_name(class) })
}

/// Patterns as C has them.
pub(crate) struct Patterns {
    _texts: Vec<CString>,
    pub keep: Vec<*const c_char>,
    pub recompute: Vec<*const c_char>,
}

impl Patterns {
    pub fn new(keep: &[String], recompute: &[String]) -> Result<Self> {
        let texts = keep.iter().chain(recompute).map(|text| c_text("pattern", text)).collect::<Result<Vec<_>>>()?;
        let all: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        Ok(Self { keep: all[..keep.len()].to_vec(), recompute: all[keep.len()..].to_vec(), _texts: texts })
    }
}

/// One segment of a chain that is put together by hand.
#[derive(Clone, Debug, Default)]
pub struct ChainSegment {
    pub name: String,
    pub forward_seconds: f64,
    pub backward_seconds: f64,
    pub slots: Vec<Slot>,
    pub outputs: Vec<Output>,
    /// Boundary numbers and `CKPT_INPUT_*` flags; None: the previous segment's first output, or boundary 0.
    pub inputs: Option<Vec<(u32, u32)>>,
    /// `ckpt::sys::CKPT_CHAIN_SEGMENT_*`
    pub flags: u32,
    pub forward_scratch_bytes: usize,
    pub backward_scratch_bytes: usize,
}

pub type ChainInput = sys::ckpt_chain_input;

/// A cost model that is put together by hand.
#[derive(Clone, Debug, Default)]
pub struct ChainOptions {
    pub inputs: Vec<ChainInput>,
    pub segments: Vec<ChainSegment>,
    /// `ckpt::sys::CKPT_GRAD_*`
    pub output_grad: u32,
    /// 0: 256
    pub alignment_bytes: usize,
}

handle! {
    /// The cost model of one recording: segments with slots, boundaries, sizes and seconds.
    Chain, ckpt_chain, ckpt_chain_destroy
}

// Immutable once made.
unsafe impl Send for Chain {}
unsafe impl Sync for Chain {}

impl Chain {
    pub fn new(options: &ChainOptions) -> Result<Self> {
        let mut names = Vec::new();
        let mut parts = Vec::new();
        let mut inputs: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
        for segment in &options.segments {
            names.push(c_text("segment name", &segment.name)?);
            parts.push(Parts::new(&segment.slots, &segment.outputs)?);
            inputs.push(segment.inputs.iter().flatten().copied().unzip());
        }
        #[allow(clippy::needless_update)] // the struct may grow
        let raw_segment = |k: usize| {
            let (segment, parts, (numbers, flags)) = (&options.segments[k], &parts[k], &inputs[k]);
            let given = segment.inputs.is_some();
            sys::ckpt_chain_segment {
                name: names[k].as_ptr(),
                forward_seconds: segment.forward_seconds,
                backward_seconds: segment.backward_seconds,
                slots: parts.slots.as_ptr(),
                outputs: parts.outputs.as_ptr(),
                inputs: if given { numbers.as_ptr() } else { ptr::null() },
                input_flags: if given { flags.as_ptr() } else { ptr::null() },
                slot_count: parts.slots.len() as u32,
                output_count: parts.outputs.len() as u32,
                input_count: numbers.len() as u32,
                flags: segment.flags,
                forward_scratch_bytes: segment.forward_scratch_bytes,
                backward_scratch_bytes: segment.backward_scratch_bytes,
                ..Default::default()
            }
        };
        let segments: Vec<_> = (0..options.segments.len()).map(raw_segment).collect();
        let desc = sys::ckpt_chain_desc {
            segment_size: size_of::<sys::ckpt_chain_segment>() as u32,
            slot_size: size_of::<sys::ckpt_slot>() as u32,
            output_size: size_of::<sys::ckpt_output>() as u32,
            inputs: if options.inputs.is_empty() { ptr::null() } else { options.inputs.as_ptr() },
            segments: segments.as_ptr(),
            input_count: options.inputs.len() as u32,
            segment_count: segments.len() as u32,
            output_grad: options.output_grad,
            alignment_bytes: options.alignment_bytes,
            ..Default::default()
        };
        let mut raw = ptr::null_mut();
        check(unsafe { sys::ckpt_chain_create(&desc, &mut raw) })?;
        Ok(Self::from_raw(raw))
    }

    /// alignment_bytes 0: the text's own, else 256. source_name: what errors call the text.
    pub fn from_json(text: &str, alignment_bytes: usize, source_name: &str) -> Result<Self> {
        let source_name = c_text("source name", source_name)?;
        let mut raw = ptr::null_mut();
        check(unsafe {
            sys::ckpt_chain_from_json(text.as_ptr() as *const c_char, text.len(), alignment_bytes, source_name.as_ptr(), &mut raw)
        })?;
        Ok(Self::from_raw(raw))
    }

    pub fn to_json(&self) -> Result<String> {
        let mut text = ptr::null_mut();
        check(unsafe { sys::ckpt_chain_to_json(self.as_ptr(), &mut text) })?;
        Ok(take_text(text))
    }

    /// Structure and sizes, not seconds.
    pub fn hash(&self) -> u64 {
        unsafe { sys::ckpt_chain_hash(self.as_ptr()) }
    }

    pub fn segment_count(&self) -> u32 {
        unsafe { sys::ckpt_chain_segment_count(self.as_ptr()) }
    }
}

/// What to plan for.
#[derive(Clone, Debug, Default)]
pub struct PlanOptions {
    pub strategy: Strategy,
    /// Bounds the arena's height; 0: none.
    pub budget_bytes: usize,
    /// Recordings in flight at once; 0: 1.
    pub in_flight_count: u32,
    pub keep_patterns: Vec<String>,
    pub recompute_patterns: Vec<String>,
    pub work_limit: u64,
    /// `ckpt::sys::CKPT_CLASS_*`
    pub plan_class: u32,
}

impl PlanOptions {
    fn with<R>(&self, f: impl FnOnce(&sys::ckpt_plan_desc) -> Result<R>) -> Result<R> {
        let patterns = Patterns::new(&self.keep_patterns, &self.recompute_patterns)?;
        let (strategy, k) = self.strategy.to_raw();
        f(&sys::ckpt_plan_desc {
            strategy,
            k,
            in_flight_count: self.in_flight_count,
            keep_patterns: patterns.keep.as_ptr(),
            recompute_patterns: patterns.recompute.as_ptr(),
            keep_pattern_count: patterns.keep.len() as u32,
            recompute_pattern_count: patterns.recompute.len() as u32,
            budget_bytes: self.budget_bytes,
            work_limit: self.work_limit,
            plan_class: self.plan_class,
            ..Default::default()
        })
    }
}

handle! {
    /// A program with its predicted peak, arena height and time.
    Plan, ckpt_plan, ckpt_plan_destroy
}

unsafe impl Send for Plan {}
unsafe impl Sync for Plan {}

impl Plan {
    pub fn new(chain: &Chain, options: &PlanOptions) -> Result<Self> {
        options.with(|desc| {
            let mut raw = ptr::null_mut();
            check(unsafe { sys::ckpt_plan_create(chain.as_ptr(), desc, &mut raw) })?;
            Ok(Self::from_raw(raw))
        })
    }

    /// The smallest budget that `new` accepts for these options.
    pub fn minimum_budget(chain: &Chain, options: &PlanOptions) -> Result<usize> {
        options.with(|desc| {
            let mut bytes = 0;
            check(unsafe { sys::ckpt_plan_minimum_budget(chain.as_ptr(), desc, &mut bytes) })?;
            Ok(bytes)
        })
    }

    /// Time over budget: at most `capacity` points.
    pub fn curve(chain: &Chain, options: &PlanOptions, capacity: u32) -> Result<Vec<CurvePoint>> {
        options.with(|desc| {
            let mut points = vec![CurvePoint::default(); capacity as usize];
            let mut count = 0;
            let size = size_of::<CurvePoint>() as u32;
            check(unsafe { sys::ckpt_plan_curve(chain.as_ptr(), desc, capacity, size, points.as_mut_ptr(), &mut count) })?;
            points.truncate(count as usize);
            Ok(points)
        })
    }

    /// From a program of any origin: verified, predicted and placed like any other.
    pub fn from_actions(chain: &Chain, actions: &[Action], in_flight_count: u32, budget_bytes: usize) -> Result<Self> {
        let mut raw = ptr::null_mut();
        let size = size_of::<Action>() as u32;
        check(unsafe {
            sys::ckpt_plan_from_actions(
                chain.as_ptr(),
                actions.as_ptr(),
                actions.len() as u32,
                size,
                in_flight_count,
                budget_bytes,
                &mut raw,
            )
        })?;
        Ok(Self::from_raw(raw))
    }

    pub fn from_json(text: &str, source_name: &str, chain: &Chain) -> Result<Self> {
        let source_name = c_text("source name", source_name)?;
        let mut raw = ptr::null_mut();
        check(unsafe {
            sys::ckpt_plan_from_json(text.as_ptr() as *const c_char, text.len(), source_name.as_ptr(), chain.as_ptr(), &mut raw)
        })?;
        Ok(Self::from_raw(raw))
    }

    fn text(&self, write: unsafe extern "C" fn(*const sys::ckpt_plan, *mut *mut c_char) -> i32) -> Result<String> {
        let mut text = ptr::null_mut();
        check(unsafe { write(self.as_ptr(), &mut text) })?;
        Ok(take_text(text))
    }

    pub fn to_json(&self) -> Result<String> {
        self.text(sys::ckpt_plan_to_json)
    }

    /// The actions in the vocabulary of checkpoint_schedules.
    pub fn to_schedule_json(&self) -> Result<String> {
        self.text(sys::ckpt_plan_to_schedule_json)
    }

    /// The step with its predicted times as Chrome's trace events.
    pub fn to_trace_json(&self) -> Result<String> {
        self.text(sys::ckpt_plan_to_trace_json)
    }

    pub fn summary(&self) -> Result<PlanSummary> {
        let mut summary = PlanSummary::default();
        check(unsafe { sys::ckpt_plan_get_summary(self.as_ptr(), &mut summary) })?;
        Ok(summary)
    }

    /// Equal plans on two machines have equal hashes.
    pub fn hash(&self) -> u64 {
        unsafe { sys::ckpt_plan_hash(self.as_ptr()) }
    }

    pub fn actions(&self) -> Result<Vec<Action>> {
        let count = self.summary()?.action_count;
        let mut actions = vec![Action::default(); count as usize];
        check(unsafe { sys::ckpt_plan_get_actions(self.as_ptr(), 0, count, size_of::<Action>() as u32, actions.as_mut_ptr()) })?;
        Ok(actions)
    }

    /// Blocks of memory of a step: what lives in them, when, and where.
    pub fn placements(&self) -> Result<Vec<Placement>> {
        let count = self.summary()?.placement_count;
        let mut all = vec![Placement::default(); count as usize];
        check(unsafe { sys::ckpt_plan_get_placements(self.as_ptr(), 0, count, size_of::<Placement>() as u32, all.as_mut_ptr()) })?;
        Ok(all)
    }

    /// Each slot and boundary under this plan, and what the opposite choice would do.
    pub fn explain(&self, chain: &Chain) -> Result<Vec<Explanation>> {
        let size = size_of::<Explanation>() as u32;
        let mut count = 0;
        check(unsafe { sys::ckpt_plan_explain(chain.as_ptr(), self.as_ptr(), 0, 0, size, ptr::null_mut(), &mut count) })?;
        let mut all = vec![Explanation::default(); count as usize];
        check(unsafe { sys::ckpt_plan_explain(chain.as_ptr(), self.as_ptr(), 0, count, size, all.as_mut_ptr(), ptr::null_mut()) })?;
        Ok(all)
    }
}

/// What a program takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verified {
    pub peak_bytes: usize,
    pub seconds: f64,
    pub recompute_seconds: f64,
}

/// Checks a program against every rule of the machine.
pub fn verify(chain: &Chain, actions: &[Action]) -> Result<Verified> {
    let mut found = Verified { peak_bytes: 0, seconds: 0.0, recompute_seconds: 0.0 };
    check(unsafe {
        sys::ckpt_program_verify(
            chain.as_ptr(),
            actions.as_ptr(),
            actions.len() as u32,
            size_of::<Action>() as u32,
            &mut found.peak_bytes,
            &mut found.seconds,
            &mut found.recompute_seconds,
        )
    })?;
    Ok(found)
}
