//! Host cost of a segment (forward and backward) through the safe layer, beside the same calls of C, in one run.
//!
//!     cargo bench --bench cost
use ckpt::{Arena, ArenaOptions, Device, Frame, Output, Root, Segment, SegmentDef, Shared, Slot, Strategy, Tape, TapeOptions};
use ckpt_sys as sys;
use std::os::raw::c_void;
use std::ptr;
use std::rc::Rc;

const SEGMENTS: usize = 64;
const STEPS: usize = 400;
const ROUNDS: usize = 15;
const KEY: u64 = 1;

/// Of this process, in seconds: other work on the machine counts less.
fn cpu_seconds() -> f64 {
    extern "C" {
        fn clock() -> std::os::raw::c_long;
    }
    1e-6 * unsafe { clock() } as f64
}

struct Nothing;

impl Segment for Nothing {
    fn forward(&self, f: &Frame<'_>) -> ckpt::Result<()> {
        let x = f.input::<f32>(0)?;
        let (slot, out) = (f.slot_mut::<f32>(0)?, f.output_mut::<f32>(0)?);
        if f.needs(0) {
            slot[0] = x[0];
        }
        if f.needs_output(0) {
            out[0] = x[0];
        }
        Ok(())
    }
    fn backward(&self, f: &Frame<'_>) -> ckpt::Result<()> {
        let (slot, out_grad) = (f.slot::<f32>(0)?, f.output_grad::<f32>(0)?);
        if let (Some(grad), Some(out_grad)) = (f.input_grad::<f32>(0)?, out_grad) {
            grad.values[0] = out_grad[0] + slot[0];
        }
        Ok(())
    }
}

unsafe extern "C" fn forward(_: *mut c_void, f: *mut sys::ckpt_frame) -> i32 {
    let x = sys::ckpt_frame_input(f, 0) as *const f32;
    let (slot, out) = (sys::ckpt_frame_slot(f, 0) as *mut f32, sys::ckpt_frame_output(f, 0) as *mut f32);
    if sys::ckpt_frame_needs(f, 0) != 0 {
        *slot = *x;
    }
    if sys::ckpt_frame_needs_output(f, 0) != 0 {
        *out = *x;
    }
    0
}

unsafe extern "C" fn backward(_: *mut c_void, f: *mut sys::ckpt_frame) -> i32 {
    let (slot, out_grad) = (sys::ckpt_frame_slot(f, 0) as *const f32, sys::ckpt_frame_output_grad(f, 0) as *const f32);
    let mut accumulate = 0;
    let grad = sys::ckpt_frame_input_grad(f, 0, &mut accumulate) as *mut f32;
    if !grad.is_null() {
        *grad = *out_grad + *slot;
    }
    0
}

fn tape(arena: &Arena) -> Tape {
    Tape::new(arena, &TapeOptions { strategy: Strategy::StoreAll, replan_never: true, ..Default::default() }).unwrap()
}

/// Seconds of a segment.
fn through_the_safe_layer(tape: &Tape, def: &SegmentDef<Nothing>, code: &Rc<Nothing>, x: &Shared<f32>, grad: &Shared<f32>) -> f64 {
    let start = cpu_seconds();
    for _ in 0..STEPS {
        tape.begin(KEY).unwrap();
        let mut y = tape.input(x, Some(grad)).unwrap();
        for _ in 0..SEGMENTS {
            y = tape.run_one(def, code, &[y]).unwrap();
        }
        tape.backward(&[Root::new(y, &[1.0f32])]).unwrap();
    }
    (cpu_seconds() - start) / (STEPS * SEGMENTS) as f64
}

fn through_c(tape: &Tape, segment: *const sys::ckpt_segment, x: &Shared<f32>, grad: &Shared<f32>) -> f64 {
    let start = cpu_seconds();
    for _ in 0..STEPS {
        unsafe {
            assert_eq!(sys::ckpt_tape_begin(tape.as_ptr(), KEY, 0), 0);
            let input = sys::ckpt_input_desc {
                data: x.as_ptr() as *const c_void,
                bytes: 4,
                grad: grad.as_ptr() as *mut c_void,
                ..Default::default()
            };
            let mut y = 0u64;
            assert_eq!(sys::ckpt_tape_input(tape.as_ptr(), &input, &mut y), 0);
            for _ in 0..SEGMENTS {
                let inputs = y;
                let call = sys::ckpt_call { input_count: 1, inputs: &inputs, ..Default::default() };
                assert_eq!(sys::ckpt_segment_run(tape.as_ptr(), segment, &call, &mut y), 0);
            }
            let (one, root) = (1.0f32, y);
            let grads = [&one as *const f32 as *const c_void];
            assert_eq!(sys::ckpt_backward(tape.as_ptr(), &root, grads.as_ptr(), 1, 0), 0);
        }
    }
    (cpu_seconds() - start) / (STEPS * SEGMENTS) as f64
}

fn main() {
    let device = Device::cpu().unwrap();
    let (arena_a, arena_b) = (Arena::new(&device, ArenaOptions::new()).unwrap(), Arena::new(&device, ArenaOptions::new()).unwrap());
    let (safe, raw) = (tape(&arena_a), tape(&arena_b));
    let def = SegmentDef::<Nothing>::builder("nothing").slot(Slot::new("slot", 4)).output(Output::new("out", 4)).input(0).build().unwrap();
    let code = Rc::new(Nothing);
    let names = ["slot", "out", "nothing"].map(|name| std::ffi::CString::new(name).unwrap());
    let slot = sys::ckpt_slot { name: names[0].as_ptr(), bytes: 4, ..Default::default() };
    let output = sys::ckpt_output { name: names[1].as_ptr(), bytes: 4, ..Default::default() };
    let desc = sys::ckpt_segment_desc {
        name: names[2].as_ptr(),
        forward: Some(forward),
        backward: Some(backward),
        slots: &slot,
        outputs: &output,
        slot_count: 1,
        output_count: 1,
        input_count: 1,
        ..Default::default()
    };
    let mut segment = ptr::null_mut();
    assert_eq!(unsafe { sys::ckpt_segment_create(&desc, &mut segment) }, 0);
    let (x, grad) = (Shared::filled(1, 1.0f32), Shared::filled(1, 0.0f32));
    let (mut safe_times, mut c_times) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        safe_times.push(through_the_safe_layer(&safe, &def, &code, &x, &grad));
        c_times.push(through_c(&raw, segment, &x, &grad));
    }
    unsafe { sys::ckpt_segment_destroy(segment) };
    for times in [&mut safe_times, &mut c_times] {
        times.sort_by(|a, b| a.partial_cmp(b).unwrap());
    }
    let median = |times: &[f64]| times[ROUNDS / 2] * 1e9;
    let spread = |times: &[f64]| format!("{:.0} to {:.0}", times[ROUNDS / 10] * 1e9, times[ROUNDS - 1 - ROUNDS / 10] * 1e9);
    println!("a segment's forward and backward, median of {} rounds (spread), nanoseconds of CPU", ROUNDS);
    println!("  C         {:6.0}  ({})", median(&c_times), spread(&c_times));
    println!("  Rust      {:6.0}  ({})", median(&safe_times), spread(&safe_times));
    println!("  over C    {:6.0}  ratio {:.2}", median(&safe_times) - median(&c_times), median(&safe_times) / median(&c_times));
}
