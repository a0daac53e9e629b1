//! The smallest whole program: a multilayer perceptron that trains in half the memory that its activations take. The C program of the
//! same name (examples/minimal.c) line by line, with the same bits.
//!
//!     cargo run --example minimal
//!
//! A layer is one segment with two slots: PRE = x W1^T and ACT = silu(PRE); its output is x + ACT W2^T. The same training runs twice,
//! first with everything stored, then within a budget: loss and gradients of every step must be the same, bit by bit.
use ckpt::{
    Arena, ArenaOptions, Buffer, Device, Frame, Output, Result, Root, Segment, SegmentDef, Shared, Slot, Tape, TapeOptions, TapeStats,
};
use std::cell::RefCell;
use std::rc::Rc;

const LAYERS: usize = 8;
const ROWS: usize = 64;
const WIDTH: usize = 32;
const HIDDEN: usize = 64;
const WEIGHTS: usize = HIDDEN * WIDTH;
const STEPS: usize = 20;
const KEY: u64 = 1;
const PRE: u32 = 0;
const ACT: u32 = 1;
const LEARNING_RATE: f32 = 2.0;

// ---- kernels ----

fn linear(out: &mut [f32], input: &[f32], weight: &[f32], inputs: usize, outputs: usize) {
    for r in 0..ROWS {
        for o in 0..outputs {
            let mut sum = 0.0f32;
            for i in 0..inputs {
                sum += input[r * inputs + i] * weight[o * inputs + i];
            }
            out[r * outputs + o] = sum;
        }
    }
}

/// Adds to weight_grad; in_grad None: not wanted.
fn linear_backward(
    mut in_grad: Option<&mut [f32]>,
    weight_grad: &mut [f32],
    input: &[f32],
    weight: &[f32],
    out_grad: &[f32],
    inputs: usize,
    outputs: usize,
) {
    if let Some(in_grad) = &mut in_grad {
        in_grad.fill(0.0);
    }
    for r in 0..ROWS {
        for o in 0..outputs {
            for i in 0..inputs {
                if let Some(in_grad) = &mut in_grad {
                    in_grad[r * inputs + i] += out_grad[r * outputs + o] * weight[o * inputs + i];
                }
                weight_grad[o * inputs + i] += out_grad[r * outputs + o] * input[r * inputs + i];
            }
        }
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}
fn silu(x: f32) -> f32 {
    x * sigmoid(x)
}
fn silu_slope(x: f32) -> f32 {
    sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x)))
}

// ---- a layer as a segment ----

struct Weights {
    w1: Vec<f32>, // HIDDEN x WIDTH
    w2: Vec<f32>, // WIDTH x HIDDEN
}

/// Callbacks take &self: what they change is in cells.
struct Layer {
    value: RefCell<Weights>,
    grad: RefCell<Weights>,
}

impl Segment for Layer {
    /// One function for the first run, a full and a partial recomputation: it asks what is needed now.
    fn forward(&self, f: &Frame<'_>) -> Result<()> {
        let weights = self.value.borrow();
        let x = f.input::<f32>(0)?;
        let (pre, act, out) = (f.slot_mut::<f32>(PRE)?, f.slot_mut::<f32>(ACT)?, f.output_mut::<f32>(0)?);
        if f.needs(PRE) {
            linear(pre, x, &weights.w1, WIDTH, HIDDEN);
        }
        if f.needs(ACT) {
            for k in 0..ROWS * HIDDEN {
                act[k] = silu(pre[k]);
            }
        }
        if f.needs_output(0) {
            linear(out, act, &weights.w2, HIDDEN, WIDTH);
            for k in 0..ROWS * WIDTH {
                out[k] += x[k];
            }
        }
        Ok(())
    }

    /// Input and both slots are there, whatever was dropped before; the scratch holds the gradient of PRE.
    fn backward(&self, f: &Frame<'_>) -> Result<()> {
        let (weights, mut grad) = (self.value.borrow(), self.grad.borrow_mut());
        let (x, pre, act) = (f.input::<f32>(0)?, f.slot::<f32>(PRE)?, f.slot::<f32>(ACT)?);
        let out_grad = f.output_grad::<f32>(0)?.expect("a gradient reaches each layer");
        let pre_grad = f.scratch::<f32>()?;
        let x_grad = f.input_grad::<f32>(0)?; // None in the first layer: nobody wants it
        linear_backward(Some(&mut *pre_grad), &mut grad.w2, act, &weights.w2, out_grad, HIDDEN, WIDTH);
        for k in 0..ROWS * HIDDEN {
            pre_grad[k] *= silu_slope(pre[k]);
        }
        let mut x_grad = x_grad.map(|grad| grad.values);
        linear_backward(x_grad.as_deref_mut(), &mut grad.w1, x, &weights.w1, pre_grad, WIDTH, HIDDEN);
        if let Some(x_grad) = x_grad {
            for k in 0..ROWS * WIDTH {
                x_grad[k] += out_grad[k];
            }
        }
        Ok(())
    }
}

fn layer_segment() -> Result<SegmentDef<Layer>> {
    let hidden_bytes = 4 * ROWS * HIDDEN;
    SegmentDef::<Layer>::builder("layer")
        .slot(Slot::new("pre", hidden_bytes))
        // With PRE kept, ACT costs one pass of silu and no product.
        .slot(Slot::new("act", hidden_bytes).reads(&[PRE]))
        .output(Output::new("out", 4 * ROWS * WIDTH).reads(&[ACT]))
        .input(0)
        .scratch(0, hidden_bytes)
        .build()
}

// ---- training ----

/// The forward pass, layer by layer. In a dry recording no callback runs, and there is no x.
fn record(tape: &Tape, segment: &SegmentDef<Layer>, layers: &[Rc<Layer>], x: Option<&Shared<f32>>) -> Result<Buffer> {
    let mut y = match x {
        Some(x) => tape.input(x, None)?,
        None => tape.input_dry(4 * ROWS * WIDTH, false)?,
    };
    for layer in layers {
        y = tape.run_one(segment, layer, &[y])?;
    }
    Ok(y)
}

fn uniform(state: &mut u32) -> f32 {
    *state = state.wrapping_mul(1664525).wrapping_add(1013904223);
    (*state >> 8) as f32 / 8388608.0 - 1.0
}

fn squared_error(y: &[f32], target: &[f32], y_grad: &mut [f32]) -> f32 {
    let n = (ROWS * WIDTH) as f32;
    let mut loss = 0.0f32;
    for k in 0..ROWS * WIDTH {
        let difference = y[k] - target[k];
        loss += difference * difference / n;
        y_grad[k] = 2.0 * difference / n;
    }
    loss
}

/// Trains from the same start within `budget` bytes (0: as many as it takes). Loss and gradients of each step.
fn train(device: &Device, budget: usize) -> Result<(Vec<Vec<f32>>, TapeStats)> {
    let mut random = 1u32;
    let x = Shared::from((0..ROWS * WIDTH).map(|_| uniform(&mut random)).collect::<Vec<f32>>());
    let target: Vec<f32> = x.to_vec().iter().map(|x| (3.0 * x).sin()).collect();
    let layers: Vec<Rc<Layer>> = (0..LAYERS)
        .map(|_| {
            let mut value = Weights { w1: vec![0.0; WEIGHTS], w2: vec![0.0; WEIGHTS] };
            for i in 0..WEIGHTS {
                value.w1[i] = uniform(&mut random) * 0.2;
                value.w2[i] = uniform(&mut random) * 0.05;
            }
            let grad = Weights { w1: vec![0.0; WEIGHTS], w2: vec![0.0; WEIGHTS] };
            Rc::new(Layer { value: RefCell::new(value), grad: RefCell::new(grad) })
        })
        .collect();
    let arena = Arena::new(device, ArenaOptions::new())?;
    let tape = Tape::new(&arena, &TapeOptions { budget_bytes: budget, ..Default::default() })?;
    let segment = layer_segment()?;
    let mut y_grad = vec![0.0f32; ROWS * WIDTH];

    // A dry recording: the plan, or its refusal with the smallest budget that works, before anything runs.
    tape.begin_dry(KEY)?;
    let y = record(&tape, &segment, &layers, None)?;
    tape.backward(&[Root::new(y, &y_grad)])?;

    let mut trail = Vec::new();
    let mut stats = TapeStats::default();
    for step in 0..STEPS {
        tape.begin(KEY)?;
        let y = record(&tape, &segment, &layers, Some(&x))?;
        let loss = squared_error(&tape.read::<f32>(y)?, &target, &mut y_grad);
        trail.push(vec![loss]);
        for layer in &layers {
            let mut grad = layer.grad.borrow_mut();
            grad.w1.fill(0.0);
            grad.w2.fill(0.0);
        }
        tape.backward(&[Root::new(y, &y_grad)])?;
        stats = tape.stats()?;
        if step % 5 == 0 || step == STEPS - 1 {
            println!(
                "  step {:2}  loss {:.6}  arena predicted {}, measured {} bytes; {} of {} forwards run again",
                step, loss, stats.arena_predicted_bytes, stats.arena_measured_bytes, stats.recompute_count, stats.forward_count
            );
        }
        assert_eq!(stats.arena_predicted_bytes, stats.arena_measured_bytes, "step {}: the prediction was wrong", step);
        assert_eq!(stats.peak_predicted_bytes, stats.peak_measured_bytes, "step {}: the prediction was wrong", step);
        for layer in &layers {
            let (mut value, grad) = (layer.value.borrow_mut(), layer.grad.borrow());
            trail.push(grad.w1.clone());
            trail.push(grad.w2.clone());
            for i in 0..WEIGHTS {
                value.w1[i] -= LEARNING_RATE * grad.w1[i];
                value.w2[i] -= LEARNING_RATE * grad.w2[i];
            }
        }
    }
    Ok((trail, stats))
}

fn main() -> Result<()> {
    let device = Device::cpu()?;
    println!("no budget: everything is stored");
    let (stored, stats) = train(&device, 0)?;
    let budget = stats.arena_measured_bytes / 2;
    println!("budget {} bytes, half of that (the smallest that works is {})", budget, stats.minimum_budget_bytes);
    let (budgeted, _) = train(&device, budget)?;
    let bits = |trail: &[Vec<f32>]| trail.iter().flatten().map(|value| value.to_bits()).collect::<Vec<u32>>();
    let equal = bits(&stored) == bits(&budgeted);
    println!("loss and gradients of all steps bitwise equal: {}", if equal { "yes" } else { "no" });
    println!("loss bits {:08x}", budgeted[(STEPS - 1) * (1 + 2 * LAYERS)][0].to_bits());
    std::process::exit(if equal { 0 } else { 1 });
}
