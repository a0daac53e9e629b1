//! Levels 2 and 3: layers as segments, and a GPT.
use super::{check_ops, AdamW, Ops};
use crate::boundary::Buffer;
use crate::error::{Error, Result};
use crate::shared::{lock, Lock, Shared};
use crate::sys;
use crate::tape::Tape;
use std::cell::RefCell;
use std::ops::Range;
use std::os::raw::c_void;
use std::ptr;
use std::rc::Rc;

pub type TensorInfo = sys::ckpt_tensor_info;
pub type EmbeddingDesc = sys::ckpt_layer_embedding_desc;
pub type BlockDesc = sys::ckpt_layer_block_desc;
pub type GptDesc = sys::ckpt_gpt_desc;

/// Final norm, product with the vocabulary's weight and mean cross-entropy.
#[derive(Clone, Copy, Debug)]
pub struct HeadDesc {
    pub rows: usize,
    pub channels: usize,
    pub vocabulary: usize,
    /// 0: all rows at once.
    pub chunk_rows: usize,
    /// The weight is another layer's: `Layer::bind_tied`.
    pub tied: bool,
    /// A target that counts for nothing: -1 by default.
    pub ignore_index: i32,
    pub epsilon: f32,
}

impl Default for HeadDesc {
    fn default() -> Self {
        Self { rows: 0, channels: 0, vocabulary: 0, chunk_rows: 0, tied: false, ignore_index: -1, epsilon: 0.0 }
    }
}

handle! {
    /// The C object.
    LayerHandle, ckpt_layer, ckpt_layer_destroy
}
handle! {
    /// The C object.
    GptHandle, ckpt_gpt, ckpt_gpt_destroy
}

/// A part of an array, or all of it: `(&array).into()`, `(&array, 10..20).into()`.
#[derive(Clone, Debug)]
pub struct Part {
    array: Shared<f32>,
    range: Range<usize>,
}

impl From<&Shared<f32>> for Part {
    fn from(array: &Shared<f32>) -> Self {
        Self { array: array.clone(), range: 0..array.len() }
    }
}

impl From<(&Shared<f32>, Range<usize>)> for Part {
    fn from((array, range): (&Shared<f32>, Range<usize>)) -> Self {
        Self { array: array.clone(), range }
    }
}

impl Part {
    fn pointer(&self, name: &str, count: usize) -> Result<*mut f32> {
        let Range { start, end } = self.range;
        if start > end || end > self.array.len() {
            return Err(Error::argument(format!("{} is elements {} to {} of an array of {}", name, start, end, self.array.len())));
        }
        if end - start != count {
            return Err(Error::argument(format!("{} has {} elements, expected {}", name, end - start, count)));
        }
        Ok(unsafe { self.array.as_ptr().add(start) })
    }
}

/// Arrays that a layer has been given, as long as it has them.
struct Bound {
    parameters: Rc<dyn Lock>,
    gradients: Option<Rc<dyn Lock>>,
}

impl Bound {
    fn new(parameters: Part, gradients: Option<Part>) -> Result<Self> {
        let parameters = parameters.array.lock();
        let gradients = gradients.map(|part| part.array.lock());
        lock::as_weights("parameters", &*parameters)?;
        if let Some(gradients) = &gradients {
            lock::as_gradients("gradients", &**gradients)?;
            if Rc::as_ptr(gradients) as *const () == Rc::as_ptr(&parameters) as *const () {
                return Err(Error::argument("gradients is the array of parameters, expected one of its own"));
            }
            lock::add(gradients.gradients(), 1);
        }
        lock::add(parameters.weights(), 1);
        Ok(Self { parameters, gradients })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        lock::add(self.parameters.weights(), -1);
        if let Some(gradients) = &self.gradients {
            lock::add(gradients.gradients(), -1);
        }
    }
}

/// The parameters are about to be written to.
fn writable(bound: &RefCell<Option<Bound>>) -> Result<()> {
    bound.borrow().as_ref().map_or(Ok(()), |bound| lock::to_write("parameters", &*bound.parameters))
}

fn same_place(ops_host: bool, tape: &Tape) -> Result<()> {
    if ops_host == tape.is_host() {
        return Ok(());
    }
    Err(Error::argument("tape: it is on another device than the layer"))
}

struct LayerInner {
    handle: LayerHandle,
    bound: RefCell<Option<Bound>>,
    tied: RefCell<Option<Bound>>,
}

/// A ready segment with named slots, and the object that goes with it.
pub struct Layer {
    inner: Rc<LayerInner>,
    host: bool,
    input_bytes: Vec<usize>,
    output_bytes: usize,
    /// Elements of a tied head's weight.
    tied_count: usize,
}

fn product(factors: &[usize]) -> usize {
    factors.iter().fold(1usize, |all, &factor| all.saturating_mul(factor))
}

impl Layer {
    fn create(ops: &Ops, inputs: Vec<usize>, output: usize, create: impl FnOnce(*mut *mut sys::ckpt_layer) -> i32) -> Result<Self> {
        let mut raw = ptr::null_mut();
        check_ops(create(&mut raw))?;
        let inner = LayerInner { handle: LayerHandle::from_raw(raw), bound: RefCell::new(None), tied: RefCell::new(None) };
        Ok(Self { inner: Rc::new(inner), host: ops.host, input_bytes: inputs, output_bytes: output, tied_count: 0 })
    }

    pub fn embedding(ops: &Ops, desc: &EmbeddingDesc) -> Result<Self> {
        let desc = sized!(desc, ckpt_layer_embedding_desc);
        let rows = product(&[desc.batch, desc.sequence]);
        let output = product(&[rows, desc.channels, ops.element_bytes]);
        Self::create(ops, vec![product(&[rows, 4])], output, |out| unsafe { sys::ckpt_layer_embedding_create(ops.as_ptr(), &desc, out) })
    }

    /// A transformer block, norms first.
    pub fn block(ops: &Ops, desc: &BlockDesc) -> Result<Self> {
        let desc = sized!(desc, ckpt_layer_block_desc);
        let bytes = product(&[desc.batch, desc.sequence, desc.channels, ops.element_bytes]);
        Self::create(ops, vec![bytes], bytes, |out| unsafe { sys::ckpt_layer_block_create(ops.as_ptr(), &desc, out) })
    }

    pub fn head(ops: &Ops, desc: &HeadDesc) -> Result<Self> {
        let raw = sys::ckpt_layer_head_desc {
            tied: desc.tied as u32,
            rows: desc.rows,
            channels: desc.channels,
            vocabulary: desc.vocabulary,
            chunk_rows: desc.chunk_rows,
            ignore_index: desc.ignore_index,
            epsilon: desc.epsilon,
            ..Default::default()
        };
        let inputs = vec![product(&[desc.rows, desc.channels, ops.element_bytes]), product(&[desc.rows, 4])];
        let mut layer = Self::create(ops, inputs, 4, |out| unsafe { sys::ckpt_layer_head_create(ops.as_ptr(), &raw, out) })?;
        layer.tied_count = product(&[desc.vocabulary, desc.channels]);
        Ok(layer)
    }

    pub fn linear(ops: &Ops, rows: usize, inputs: usize, outputs: usize, bias: bool) -> Result<Self> {
        let (input, output) = (product(&[rows, inputs, ops.element_bytes]), product(&[rows, outputs, ops.element_bytes]));
        Self::create(ops, vec![input], output, |out| unsafe {
            sys::ckpt_layer_linear_create(ops.as_ptr(), rows, inputs, outputs, bias as u32, out)
        })
    }

    /// epsilon 0: 1e-5
    pub fn layernorm(ops: &Ops, rows: usize, channels: usize, epsilon: f32) -> Result<Self> {
        let bytes = product(&[rows, channels, ops.element_bytes]);
        Self::create(ops, vec![bytes], bytes, |out| unsafe { sys::ckpt_layer_layernorm_create(ops.as_ptr(), rows, channels, epsilon, out) })
    }

    pub fn gelu(ops: &Ops, count: usize) -> Result<Self> {
        let bytes = product(&[count, ops.element_bytes]);
        Self::create(ops, vec![bytes], bytes, |out| unsafe { sys::ckpt_layer_gelu_create(ops.as_ptr(), count, out) })
    }

    pub fn dropout(ops: &Ops, count: usize, probability: f32) -> Result<Self> {
        let bytes = product(&[count, ops.element_bytes]);
        Self::create(ops, vec![bytes], bytes, |out| unsafe { sys::ckpt_layer_dropout_create(ops.as_ptr(), count, probability, out) })
    }

    pub fn as_ptr(&self) -> *mut sys::ckpt_layer {
        self.inner.handle.as_ptr()
    }

    /// Elements of its parameters, and of their gradients.
    pub fn parameter_count(&self) -> usize {
        unsafe { sys::ckpt_layer_parameter_count(self.as_ptr()) }
    }

    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        let count = unsafe { sys::ckpt_layer_tensor_count(self.as_ptr()) };
        let tensor = |k| {
            let mut info = TensorInfo::default();
            check_ops(unsafe { sys::ckpt_layer_get_tensor(self.as_ptr(), k, &mut info) }).map(|_| info)
        };
        (0..count).map(tensor).collect()
    }

    fn host(&self) -> Result<()> {
        if self.host {
            return Ok(());
        }
        Err(Error::argument("parameters: host memory for a layer of another device, expected bind_on_device"))
    }

    /// gradients None: forward only.
    pub fn bind(&self, parameters: impl Into<Part>, gradients: Option<Part>) -> Result<()> {
        self.host()?;
        let (parameters, count) = (parameters.into(), self.parameter_count());
        let values = parameters.pointer("parameters", count)?;
        let grads = gradients.as_ref().map_or(Ok(ptr::null_mut()), |part| part.pointer("gradients", count))?;
        let bound = Bound::new(parameters, gradients)?;
        check_ops(unsafe { sys::ckpt_layer_bind(self.as_ptr(), values as *mut _, grads) })?;
        self.inner.bound.replace(Some(bound));
        Ok(())
    }

    /// # Safety
    /// Both are arrays on the layer's device, until they are bound anew or the layer and all recordings with it are gone.
    pub unsafe fn bind_on_device(&self, parameters: *mut c_void, gradients: *mut f32) -> Result<()> {
        check_ops(sys::ckpt_layer_bind(self.as_ptr(), parameters as *mut _, gradients))?;
        self.inner.bound.replace(None);
        Ok(())
    }

    /// A tied head's weight and its gradient, another layer's.
    pub fn bind_tied(&self, weight: impl Into<Part>, weight_grad: Option<Part>) -> Result<()> {
        self.host()?;
        let weight = weight.into();
        let value = weight.pointer("weight", self.tied_count)?;
        let grad = weight_grad.as_ref().map_or(Ok(ptr::null_mut()), |part| part.pointer("weight_grad", self.tied_count))?;
        let bound = Bound::new(weight, weight_grad)?;
        check_ops(unsafe { sys::ckpt_layer_bind_tied(self.as_ptr(), value as *const _, grad) })?;
        self.inner.tied.replace(Some(bound));
        Ok(())
    }

    /// Writes the bound parameters.
    pub fn init(&self, seed: u64, first_tensor: u64) -> Result<()> {
        writable(&self.inner.bound)?;
        check_ops(unsafe { sys::ckpt_layer_init(self.as_ptr(), seed, first_tensor) })
    }

    /// A head's latest loss (on the CPU).
    pub fn loss(&self) -> Option<f32> {
        let loss = unsafe { sys::ckpt_layer_loss(self.as_ptr()) };
        if loss.is_null() || !self.host {
            return None;
        }
        Some(unsafe { *loss })
    }

    /// The layer's segment and user, for calls of one's own; valid as long as the layer lives.
    pub fn segment(&self, evaluate: bool) -> (*const sys::ckpt_segment, *mut c_void) {
        unsafe { (sys::ckpt_layer_segment(self.as_ptr()), sys::ckpt_layer_user(self.as_ptr(), flags(evaluate))) }
    }

    /// Records it on a tape.
    pub fn run(&self, tape: &Tape, inputs: &[Buffer], evaluate: bool) -> Result<Buffer> {
        same_place(self.host, tape)?;
        tape.ready()?;
        if inputs.len() != self.input_bytes.len() {
            return Err(Error::argument(format!("inputs has {} buffers, expected {}", inputs.len(), self.input_bytes.len())));
        }
        for (k, (input, &expected)) in inputs.iter().zip(&self.input_bytes).enumerate() {
            if input.bytes() != expected || input.grad_bytes() != expected {
                return Err(Error::argument(format!(
                    "inputs[{}] has {} bytes and a gradient of {}, expected {}",
                    k,
                    input.bytes(),
                    input.grad_bytes(),
                    expected
                )));
            }
        }
        let raw: Vec<u64> = inputs.iter().map(|input| input.as_raw()).collect();
        let mut output = 0;
        tape.keep(self.inner.clone());
        let done = check_ops(unsafe {
            sys::ckpt_layer_run(self.as_ptr(), tape.as_ptr(), raw.as_ptr(), raw.len() as u32, flags(evaluate), &mut output)
        });
        tape.settle(done)?;
        Ok(tape.boundary(output, self.output_bytes))
    }
}

fn flags(evaluate: bool) -> u32 {
    if evaluate {
        sys::CKPT_LAYER_EVALUATE
    } else {
        0
    }
}

struct GptInner {
    handle: GptHandle,
    bound: RefCell<Option<Bound>>,
}

/// A language model on a tape.
pub struct Gpt {
    inner: Rc<GptInner>,
    host: bool,
    tokens: usize,
}

impl Gpt {
    pub fn new(ops: &Ops, desc: &GptDesc) -> Result<Self> {
        let desc = sized!(desc, ckpt_gpt_desc);
        let mut raw = ptr::null_mut();
        check_ops(unsafe { sys::ckpt_gpt_create(ops.as_ptr(), &desc, &mut raw) })?;
        let inner = GptInner { handle: GptHandle::from_raw(raw), bound: RefCell::new(None) };
        Ok(Self { inner: Rc::new(inner), host: ops.host, tokens: product(&[desc.batch, desc.sequence]) })
    }

    pub fn as_ptr(&self) -> *mut sys::ckpt_gpt {
        self.inner.handle.as_ptr()
    }

    pub fn parameter_count(&self) -> usize {
        unsafe { sys::ckpt_gpt_parameter_count(self.as_ptr()) }
    }

    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        let count = unsafe { sys::ckpt_gpt_tensor_count(self.as_ptr()) };
        let tensor = |k| {
            let mut info = TensorInfo::default();
            check_ops(unsafe { sys::ckpt_gpt_get_tensor(self.as_ptr(), k, &mut info) }).map(|_| info)
        };
        (0..count).map(tensor).collect()
    }

    /// The caller zeroes the gradients before the first micro-batch of each update.
    pub fn bind(&self, parameters: &Shared<f32>, gradients: Option<&Shared<f32>>) -> Result<()> {
        if !self.host {
            return Err(Error::argument("parameters: host memory for a model of another device, expected bind_on_device"));
        }
        let count = self.parameter_count();
        let (parameters, gradients) = (Part::from(parameters), gradients.map(Part::from));
        let values = parameters.pointer("parameters", count)?;
        let grads = gradients.as_ref().map_or(Ok(ptr::null_mut()), |part| part.pointer("gradients", count))?;
        let bound = Bound::new(parameters, gradients)?;
        check_ops(unsafe { sys::ckpt_gpt_bind(self.as_ptr(), values as *mut _, grads) })?;
        self.inner.bound.replace(Some(bound));
        Ok(())
    }

    /// # Safety
    /// Both are arrays on the model's device, until they are bound anew or the model and all recordings with it are gone.
    pub unsafe fn bind_on_device(&self, parameters: *mut c_void, gradients: *mut f32) -> Result<()> {
        check_ops(sys::ckpt_gpt_bind(self.as_ptr(), parameters as *mut _, gradients))?;
        self.inner.bound.replace(None);
        Ok(())
    }

    /// Writes the bound parameters.
    pub fn init(&self, seed: u64) -> Result<()> {
        writable(&self.inner.bound)?;
        check_ops(unsafe { sys::ckpt_gpt_init(self.as_ptr(), seed) })
    }

    /// Records one forward pass; the loss as a boundary.
    pub fn record(&self, tape: &Tape, tokens: &Shared<i32>, targets: &Shared<i32>, evaluate: bool) -> Result<Buffer> {
        for (name, array) in [("tokens", tokens), ("targets", targets)] {
            if array.len() != self.tokens {
                return Err(Error::argument(format!("{} has {} elements, expected {}", name, array.len(), self.tokens)));
            }
            lock::as_input(name, &*array.lock())?;
        }
        if !self.host {
            return Err(Error::argument("tokens: host memory for a model of another device, expected record_on_device"));
        }
        same_place(self.host, tape)?;
        tape.ready()?;
        // Held first: a recording that fails halfway, and stays, reads them too.
        tape.hold(tokens.lock());
        tape.hold(targets.lock());
        unsafe { self.record_on_device(tape, tokens.as_ptr(), targets.as_ptr(), evaluate) }
    }

    /// In a dry recording.
    pub fn record_dry(&self, tape: &Tape) -> Result<Buffer> {
        unsafe { self.record_on_device(tape, ptr::null(), ptr::null(), false) }
    }

    /// # Safety
    /// batch * sequence numbers each on the model's device, unchanged until the recording ends.
    pub unsafe fn record_on_device(&self, tape: &Tape, tokens: *const i32, targets: *const i32, evaluate: bool) -> Result<Buffer> {
        same_place(self.host, tape)?;
        tape.ready()?;
        tape.keep(self.inner.clone());
        let mut loss = 0;
        let done = check_ops(sys::ckpt_gpt_record(self.as_ptr(), tape.as_ptr(), tokens, targets, flags(evaluate), &mut loss));
        tape.settle(done)?;
        Ok(tape.boundary(loss, 4))
    }

    /// The latest loss (on the CPU); NaN elsewhere.
    pub fn loss(&self) -> f32 {
        let loss = unsafe { sys::ckpt_gpt_loss(self.as_ptr()) };
        if loss.is_null() || !self.host {
            return f32::NAN;
        }
        unsafe { *loss }
    }

    /// AdamW over the bound parameters and gradients. The gradients' norm before scaling, if it was asked for.
    pub fn update(&self, update: &AdamW, first_moment: &Shared<f32>, second_moment: &Shared<f32>, want_norm: bool) -> Result<Option<f64>> {
        for (name, array) in [("first_moment", first_moment), ("second_moment", second_moment)] {
            if array.len() != self.parameter_count() {
                return Err(Error::argument(format!("{} has {} elements, expected {}", name, array.len(), self.parameter_count())));
            }
            lock::as_gradients(name, &*array.lock())?;
        }
        writable(&self.inner.bound)?;
        if !self.host {
            return Err(Error::argument("first_moment: host memory for a model of another device, expected ckpt::sys::ckpt_gpt_update"));
        }
        let mut norm = 0.0;
        let out = if want_norm { &mut norm as *mut f64 } else { ptr::null_mut() };
        check_ops(unsafe { sys::ckpt_gpt_update(self.as_ptr(), &update.to_raw(), first_moment.as_ptr(), second_moment.as_ptr(), out) })?;
        Ok(if want_norm { Some(norm) } else { None })
    }
}
