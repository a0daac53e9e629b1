//! A small net whose layers can be told to fail, and what the tests share.
#![allow(dead_code)]
use ckpt::{
    Arena, ArenaOptions, Buffer, Device, Error, Frame, Output, Result, Root, Segment, SegmentDef, Shared, Slot, Strategy, Tape, TapeOptions,
};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

pub const COUNT: usize = 96;
pub const KEY: u64 = 7;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    Nowhere,
    Forward,
    Recompute,
    Backward,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    Error,
    Panic,
}

thread_local! {
    /// Where the next callback fails, once.
    pub static FAIL: Cell<(Place, How)> = const { Cell::new((Place::Nowhere, How::Error)) };
    pub static DROPPED: Cell<usize> = const { Cell::new(0) };
}

pub fn fail_next(place: Place, how: How) {
    FAIL.with(|fail| fail.set((place, how)));
}

fn trip(place: Place) -> Result<()> {
    FAIL.with(|fail| {
        let (wanted, how) = fail.get();
        if wanted != place {
            return Ok(());
        }
        fail.set((Place::Nowhere, how));
        match how {
            How::Error => Err(Error::user(42, "told to fail")),
            How::Panic => panic!("told to panic"),
        }
    })
}

/// mix = w x^2 + noise; out = x / 2 + mix. Slots: the square, the noise, the mix.
pub struct Layer {
    pub weight: f32,
    pub weight_grad: Cell<f32>,
    pub calls: RefCell<Vec<(bool, bool)>>,
}

impl Drop for Layer {
    fn drop(&mut self) {
        DROPPED.with(|dropped| dropped.set(dropped.get() + 1));
    }
}

impl Segment for Layer {
    fn forward(&self, f: &Frame<'_>) -> Result<()> {
        trip(if f.is_recompute() { Place::Recompute } else { Place::Forward })?;
        let x = f.input::<f32>(0)?;
        let (square, noise, mix, out) = (f.slot_mut::<f32>(0)?, f.slot_mut::<f32>(1)?, f.slot_mut::<f32>(2)?, f.output_mut::<f32>(0)?);
        if f.needs(0) {
            for k in 0..COUNT {
                square[k] = x[k] * x[k];
            }
        }
        if f.needs(1) {
            f.random(3).fill_uniform(0, noise)?;
        }
        if f.needs(2) {
            for k in 0..COUNT {
                mix[k] = self.weight * square[k] + 0.01 * noise[k];
            }
        }
        if f.needs_output(0) {
            for k in 0..COUNT {
                out[k] = 0.5 * x[k] + mix[k];
            }
        }
        Ok(())
    }

    fn backward(&self, f: &Frame<'_>) -> Result<()> {
        trip(Place::Backward)?;
        let (x, square, noise) = (f.input::<f32>(0)?, f.slot::<f32>(0)?, f.slot::<f32>(1)?);
        let out_grad = f.output_grad::<f32>(0)?.unwrap_or(&[]);
        let mut weight_grad = self.weight_grad.get();
        for k in 0..out_grad.len() {
            weight_grad += out_grad[k] * square[k] + 1e-3 * noise[k];
        }
        self.weight_grad.set(weight_grad);
        if let Some(grad) = f.input_grad::<f32>(0)? {
            for k in 0..COUNT {
                let value = out_grad[k] * (0.5 + 2.0 * self.weight * x[k]);
                grad.values[k] = if grad.accumulate { grad.values[k] + value } else { value };
            }
        }
        Ok(())
    }
}

pub fn layer_def() -> SegmentDef<Layer> {
    let bytes = 4 * COUNT;
    SegmentDef::<Layer>::builder("layer")
        .slot(Slot::new("square", bytes).reads(&[]))
        .slot(Slot::new("noise", bytes).reads(&[]))
        .slot(Slot::new("mix", bytes).reads(&[0, 1]).flags(ckpt::sys::CKPT_SLOT_TRANSIENT))
        .output(Output::new("out", bytes).reads(&[2]))
        .input(0)
        .build()
        .unwrap()
}

pub struct Net {
    pub arena: Arena,
    pub tape: Tape,
    pub def: SegmentDef<Layer>,
    pub layers: Vec<Rc<Layer>>,
    pub x: Shared<f32>,
    pub x_grad: Shared<f32>,
}

/// What a step came to, as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub out: Vec<u32>,
    pub x_grad: Vec<u32>,
    pub weight_grads: Vec<u32>,
}

pub fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

impl Net {
    pub fn new(layers: usize, strategy: Strategy, budget_bytes: usize) -> Self {
        Self::with(layers, TapeOptions { strategy, budget_bytes, seed: 5, ..Default::default() })
    }

    pub fn with(layers: usize, options: TapeOptions) -> Self {
        let arena = Arena::new(&Device::cpu().unwrap(), ArenaOptions::new().guard().poison()).unwrap();
        let tape = Tape::new(&arena, &options).unwrap();
        let layer = |k: usize| Rc::new(Layer { weight: 0.1 + 0.05 * k as f32, weight_grad: Cell::new(0.0), calls: RefCell::default() });
        let x = Shared::from((0..COUNT).map(|k| (k as f32 * 0.37).sin()).collect::<Vec<f32>>());
        Self { arena, tape, def: layer_def(), layers: (0..layers).map(layer).collect(), x, x_grad: Shared::filled(COUNT, 0.0) }
    }

    pub fn record(&self, dry: bool) -> Result<Buffer> {
        let mut y = if dry { self.tape.input_dry(4 * COUNT, true)? } else { self.tape.input(&self.x, Some(&self.x_grad))? };
        for layer in &self.layers {
            y = self.tape.run_one(&self.def, layer, &[y])?;
        }
        Ok(y)
    }

    pub fn plan(&self) -> Result<()> {
        self.tape.begin_dry(KEY)?;
        let y = self.record(true)?;
        self.tape.backward(&[Root::new(y, &[1.0f32; COUNT])])
    }

    pub fn step(&self) -> Result<Outcome> {
        for layer in &self.layers {
            layer.weight_grad.set(0.0);
        }
        self.tape.begin(KEY)?;
        let y = self.record(false)?;
        let out = bits(&self.tape.read::<f32>(y)?);
        self.tape.backward(&[Root::new(y, &[1.0f32; COUNT])])?;
        let weight_grads: Vec<f32> = self.layers.iter().map(|layer| layer.weight_grad.get()).collect();
        Ok(Outcome { out, x_grad: bits(&self.x_grad.to_vec()), weight_grads: bits(&weight_grads) })
    }
}

pub fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..").canonicalize().unwrap()
}

/// A panic's text and backtrace are noise where it is expected.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|info| {
        let told = info.payload().downcast_ref::<&str>().map_or(false, |text| text.starts_with("told") || text.starts_with("this array"));
        if !told {
            eprintln!("{}", info);
        }
    }));
}
