//! Level 1: plain functions on arrays. Wrong lengths are errors that name argument, length and expectation. What may be the same array
//! in C is two here.
#![allow(clippy::too_many_arguments)]
use super::{check_ops, Ops};
use crate::error::{Error, Result};
use crate::philox::Philox;
use crate::sys;
use std::ptr;

/// [rows, inputs] to [rows, outputs].
#[derive(Clone, Copy, Debug)]
pub struct LinearShape {
    pub rows: usize,
    pub inputs: usize,
    pub outputs: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct AttentionShape {
    pub batch: usize,
    pub sequence: usize,
    pub heads: usize,
    pub channels: usize,
}

#[derive(Clone, Copy, Debug)]
pub struct EmbeddingShape {
    pub batch: usize,
    pub sequence: usize,
    pub channels: usize,
    pub vocabulary: usize,
}

/// Adam with decoupled weight decay. Zeros of beta1, beta2, epsilon and grad_scale are their defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AdamW {
    pub learning_rate: f32,
    pub beta1: f32,
    pub beta2: f32,
    pub epsilon: f32,
    pub weight_decay: f32,
    /// `Gpt::update` only: gradients are scaled down to this norm; 0: never.
    pub max_norm: f32,
    pub grad_scale: f32,
    /// Of this update, from 1.
    pub step: u64,
}

impl AdamW {
    pub(crate) fn to_raw(self) -> sys::ckpt_adamw_desc {
        sys::ckpt_adamw_desc {
            learning_rate: self.learning_rate,
            beta1: self.beta1,
            beta2: self.beta2,
            epsilon: self.epsilon,
            weight_decay: self.weight_decay,
            max_norm: self.max_norm,
            grad_scale: self.grad_scale,
            step: self.step,
            ..Default::default()
        }
    }
}

fn size(factors: &[usize]) -> usize {
    factors.iter().fold(1usize, |all, &factor| all.saturating_mul(factor))
}

pub(super) fn wants(name: &str, len: usize, factors: &[usize]) -> Result<()> {
    if len == size(factors) {
        return Ok(());
    }
    Err(Error::argument(format!("{} has {} elements, expected {}", name, len, size(factors))))
}

fn wants_some<T>(name: &str, array: &Option<T>, len: impl Fn(&T) -> usize, factors: &[usize]) -> Result<()> {
    array.as_ref().map_or(Ok(()), |array| wants(name, len(array), factors))
}

fn opt(array: Option<&[f32]>) -> *const f32 {
    array.map_or(ptr::null(), |array| array.as_ptr())
}

fn opt_mut(array: Option<&mut [f32]>) -> *mut f32 {
    array.map_or(ptr::null_mut(), |array| array.as_mut_ptr())
}

/// The snapshot as C wants it: NULL for none.
macro_rules! snapshot {
    ($philox:ident, $raw:ident, $pointer:ident) => {
        let $raw = $philox.map(|philox: &Philox| philox.to_raw());
        let $pointer = $raw.as_ref().map_or(ptr::null(), |raw| raw as *const sys::ckpt_philox);
    };
}
pub(super) use snapshot;

impl Ops {
    pub fn embedding_forward(
        &self,
        shape: EmbeddingShape,
        tokens: &[i32],
        token_table: &[f32],
        position_table: Option<&[f32]>,
        out: &mut [f32],
    ) -> Result<()> {
        let EmbeddingShape { batch, sequence, channels, vocabulary } = shape;
        self.slices()?;
        wants("tokens", tokens.len(), &[batch, sequence])?;
        wants("token_table", token_table.len(), &[vocabulary, channels])?;
        wants_some("position_table", &position_table, |a| a.len(), &[sequence, channels])?;
        wants("out", out.len(), &[batch, sequence, channels])?;
        check_ops(unsafe {
            sys::ckpt_ops_embedding_forward(
                self.as_ptr(),
                tokens.as_ptr(),
                token_table.as_ptr() as *const _,
                opt(position_table) as *const _,
                batch,
                sequence,
                channels,
                vocabulary,
                out.as_mut_ptr() as *mut _,
            )
        })
    }

    pub fn embedding_backward(
        &self,
        shape: EmbeddingShape,
        tokens: &[i32],
        out_grad: &[f32],
        token_grad: Option<&mut [f32]>,
        position_grad: Option<&mut [f32]>,
    ) -> Result<()> {
        let EmbeddingShape { batch, sequence, channels, vocabulary } = shape;
        self.slices()?;
        wants("tokens", tokens.len(), &[batch, sequence])?;
        wants("out_grad", out_grad.len(), &[batch, sequence, channels])?;
        wants_some("token_grad", &token_grad, |a| a.len(), &[vocabulary, channels])?;
        wants_some("position_grad", &position_grad, |a| a.len(), &[sequence, channels])?;
        check_ops(unsafe {
            sys::ckpt_ops_embedding_backward(
                self.as_ptr(),
                tokens.as_ptr(),
                out_grad.as_ptr() as *const _,
                batch,
                sequence,
                channels,
                vocabulary,
                opt_mut(token_grad),
                opt_mut(position_grad),
            )
        })
    }

    fn linear_lengths(shape: LinearShape, input: usize, weight: usize, bias: Option<&[f32]>, out: usize) -> Result<()> {
        wants("input", input, &[shape.rows, shape.inputs])?;
        wants("weight", weight, &[shape.outputs, shape.inputs])?;
        wants_some("bias", &bias, |a| a.len(), &[shape.outputs])?;
        wants("out", out, &[shape.rows, shape.outputs])
    }

    pub fn linear_forward(&self, shape: LinearShape, input: &[f32], weight: &[f32], bias: Option<&[f32]>, out: &mut [f32]) -> Result<()> {
        self.slices()?;
        Self::linear_lengths(shape, input.len(), weight.len(), bias, out.len())?;
        check_ops(unsafe {
            sys::ckpt_ops_linear_forward(
                self.as_ptr(),
                input.as_ptr() as *const _,
                weight.as_ptr() as *const _,
                opt(bias) as *const _,
                shape.rows,
                shape.inputs,
                shape.outputs,
                out.as_mut_ptr() as *mut _,
            )
        })
    }

    /// out = residual + dropout(input * weight^T + bias)
    pub fn linear_residual_forward(
        &self,
        shape: LinearShape,
        input: &[f32],
        weight: &[f32],
        bias: Option<&[f32]>,
        residual: &[f32],
        dropout_probability: f32,
        philox: Option<&Philox>,
        out: &mut [f32],
    ) -> Result<()> {
        self.slices()?;
        Self::linear_lengths(shape, input.len(), weight.len(), bias, out.len())?;
        wants("residual", residual.len(), &[shape.rows, shape.outputs])?;
        snapshot!(philox, raw, philox);
        check_ops(unsafe {
            sys::ckpt_ops_linear_residual_forward(
                self.as_ptr(),
                input.as_ptr() as *const _,
                weight.as_ptr() as *const _,
                opt(bias) as *const _,
                residual.as_ptr() as *const _,
                dropout_probability,
                philox,
                shape.rows,
                shape.inputs,
                shape.outputs,
                out.as_mut_ptr() as *mut _,
            )
        })
    }

    /// None: not wanted.
    pub fn linear_backward(
        &self,
        shape: LinearShape,
        input: &[f32],
        weight: &[f32],
        out_grad: &[f32],
        in_grad: Option<&mut [f32]>,
        accumulate: bool,
        weight_grad: Option<&mut [f32]>,
        bias_grad: Option<&mut [f32]>,
    ) -> Result<()> {
        self.slices()?;
        Self::linear_lengths(shape, input.len(), weight.len(), None, out_grad.len())?;
        wants_some("in_grad", &in_grad, |a| a.len(), &[shape.rows, shape.inputs])?;
        wants_some("weight_grad", &weight_grad, |a| a.len(), &[shape.outputs, shape.inputs])?;
        wants_some("bias_grad", &bias_grad, |a| a.len(), &[shape.outputs])?;
        check_ops(unsafe {
            sys::ckpt_ops_linear_backward(
                self.as_ptr(),
                input.as_ptr() as *const _,
                weight.as_ptr() as *const _,
                out_grad.as_ptr() as *const _,
                shape.rows,
                shape.inputs,
                shape.outputs,
                opt_mut(in_grad) as *mut _,
                accumulate as u32,
                opt_mut(weight_grad),
                opt_mut(bias_grad),
            )
        })
    }

    pub fn layernorm_forward(
        &self,
        rows: usize,
        channels: usize,
        epsilon: f32,
        input: &[f32],
        weight: &[f32],
        bias: &[f32],
        out: &mut [f32],
        mean: &mut [f32],
        rstd: &mut [f32],
    ) -> Result<()> {
        self.slices()?;
        wants("input", input.len(), &[rows, channels])?;
        wants("weight", weight.len(), &[channels])?;
        wants("bias", bias.len(), &[channels])?;
        wants("out", out.len(), &[rows, channels])?;
        wants("mean", mean.len(), &[rows])?;
        wants("rstd", rstd.len(), &[rows])?;
        check_ops(unsafe {
            sys::ckpt_ops_layernorm_forward(
                self.as_ptr(),
                input.as_ptr() as *const _,
                weight.as_ptr() as *const _,
                bias.as_ptr() as *const _,
                rows,
                channels,
                epsilon,
                out.as_mut_ptr() as *mut _,
                mean.as_mut_ptr(),
                rstd.as_mut_ptr(),
            )
        })
    }

    pub fn layernorm_backward(
        &self,
        rows: usize,
        channels: usize,
        input: &[f32],
        mean: &[f32],
        rstd: &[f32],
        weight: &[f32],
        out_grad: &[f32],
        residual_grad: Option<&[f32]>,
        in_grad: &mut [f32],
        accumulate: bool,
        weight_grad: Option<&mut [f32]>,
        bias_grad: Option<&mut [f32]>,
    ) -> Result<()> {
        self.slices()?;
        wants("input", input.len(), &[rows, channels])?;
        wants("mean", mean.len(), &[rows])?;
        wants("rstd", rstd.len(), &[rows])?;
        wants("weight", weight.len(), &[channels])?;
        wants("out_grad", out_grad.len(), &[rows, channels])?;
        wants_some("residual_grad", &residual_grad, |a| a.len(), &[rows, channels])?;
        wants("in_grad", in_grad.len(), &[rows, channels])?;
        wants_some("weight_grad", &weight_grad, |a| a.len(), &[channels])?;
        wants_some("bias_grad", &bias_grad, |a| a.len(), &[channels])?;
        check_ops(unsafe {
            sys::ckpt_ops_layernorm_backward(
                self.as_ptr(),
                input.as_ptr() as *const _,
                mean.as_ptr(),
                rstd.as_ptr(),
                weight.as_ptr() as *const _,
                out_grad.as_ptr() as *const _,
                opt(residual_grad) as *const _,
                rows,
                channels,
                in_grad.as_mut_ptr() as *mut _,
                accumulate as u32,
                opt_mut(weight_grad),
                opt_mut(bias_grad),
            )
        })
    }

    pub fn gelu_forward(&self, rows: usize, columns: usize, input: &[f32], bias: Option<&[f32]>, out: &mut [f32]) -> Result<()> {
        self.slices()?;
        wants("input", input.len(), &[rows, columns])?;
        wants_some("bias", &bias, |a| a.len(), &[columns])?;
        wants("out", out.len(), &[rows, columns])?;
        check_ops(unsafe {
            sys::ckpt_ops_gelu_forward(
                self.as_ptr(),
                input.as_ptr() as *const _,
                opt(bias) as *const _,
                rows,
                columns,
                out.as_mut_ptr() as *mut _,
            )
        })
    }

    pub fn gelu_backward(
        &self,
        rows: usize,
        columns: usize,
        input: &[f32],
        bias: Option<&[f32]>,
        out_grad: &[f32],
        in_grad: &mut [f32],
        accumulate: bool,
        bias_grad: Option<&mut [f32]>,
    ) -> Result<()> {
        self.slices()?;
        wants("input", input.len(), &[rows, columns])?;
        wants_some("bias", &bias, |a| a.len(), &[columns])?;
        wants("out_grad", out_grad.len(), &[rows, columns])?;
        wants("in_grad", in_grad.len(), &[rows, columns])?;
        wants_some("bias_grad", &bias_grad, |a| a.len(), &[columns])?;
        check_ops(unsafe {
            sys::ckpt_ops_gelu_backward(
                self.as_ptr(),
                input.as_ptr() as *const _,
                opt(bias) as *const _,
                out_grad.as_ptr() as *const _,
                rows,
                columns,
                in_grad.as_mut_ptr() as *mut _,
                accumulate as u32,
                opt_mut(bias_grad),
            )
        })
    }

    /// out = residual + input * mask / (1 - probability)
    pub fn dropout_forward(
        &self,
        input: &[f32],
        residual: Option<&[f32]>,
        probability: f32,
        philox: Option<&Philox>,
        out: &mut [f32],
    ) -> Result<()> {
        self.slices()?;
        wants_some("residual", &residual, |a| a.len(), &[input.len()])?;
        wants("out", out.len(), &[input.len()])?;
        snapshot!(philox, raw, philox);
        check_ops(unsafe {
            sys::ckpt_ops_dropout_forward(
                self.as_ptr(),
                input.as_ptr() as *const _,
                opt(residual) as *const _,
                probability,
                philox,
                input.len(),
                out.as_mut_ptr() as *mut _,
            )
        })
    }

    pub fn dropout_backward(
        &self,
        out_grad: &[f32],
        probability: f32,
        philox: Option<&Philox>,
        in_grad: &mut [f32],
        accumulate: bool,
    ) -> Result<()> {
        self.slices()?;
        wants("in_grad", in_grad.len(), &[out_grad.len()])?;
        snapshot!(philox, raw, philox);
        check_ops(unsafe {
            sys::ckpt_ops_dropout_backward(
                self.as_ptr(),
                out_grad.as_ptr() as *const _,
                probability,
                philox,
                out_grad.len(),
                in_grad.as_mut_ptr() as *mut _,
                accumulate as u32,
            )
        })
    }

    pub fn add(&self, a: &[f32], b: &[f32], out: &mut [f32]) -> Result<()> {
        self.slices()?;
        wants("b", b.len(), &[a.len()])?;
        wants("out", out.len(), &[a.len()])?;
        check_ops(unsafe {
            sys::ckpt_ops_add(self.as_ptr(), a.as_ptr() as *const _, b.as_ptr() as *const _, a.len(), out.as_mut_ptr() as *mut _)
        })
    }

    /// The loss; `lse` takes the log-sum-exp of each row.
    pub fn cross_entropy_forward(
        &self,
        vocabulary: usize,
        ignore_index: i32,
        logits: &[f32],
        targets: &[i32],
        lse: &mut [f32],
    ) -> Result<f32> {
        self.slices()?;
        wants("logits", logits.len(), &[targets.len(), vocabulary])?;
        wants("lse", lse.len(), &[targets.len()])?;
        let mut loss = 0.0f32;
        check_ops(unsafe {
            sys::ckpt_ops_cross_entropy_forward(
                self.as_ptr(),
                logits.as_ptr() as *const _,
                targets.as_ptr(),
                targets.len(),
                vocabulary,
                ignore_index,
                lse.as_mut_ptr(),
                &mut loss,
            )
        })?;
        Ok(loss)
    }

    pub fn cross_entropy_backward(
        &self,
        vocabulary: usize,
        ignore_index: i32,
        logits: &[f32],
        targets: &[i32],
        lse: &[f32],
        loss_grad: f32,
        logits_grad: &mut [f32],
    ) -> Result<()> {
        self.slices()?;
        wants("logits", logits.len(), &[targets.len(), vocabulary])?;
        wants("lse", lse.len(), &[targets.len()])?;
        wants("logits_grad", logits_grad.len(), &[logits.len()])?;
        check_ops(unsafe {
            sys::ckpt_ops_cross_entropy_backward(
                self.as_ptr(),
                logits.as_ptr() as *const _,
                targets.as_ptr(),
                lse.as_ptr(),
                targets.len(),
                vocabulary,
                ignore_index,
                loss_grad,
                logits_grad.as_mut_ptr() as *mut _,
            )
        })
    }

    /// The L2 norm.
    pub fn norm(&self, values: &[f32]) -> Result<f64> {
        self.slices()?;
        let mut norm = 0.0;
        check_ops(unsafe { sys::ckpt_ops_norm(self.as_ptr(), values.as_ptr(), values.len(), &mut norm) })?;
        Ok(norm)
    }

    /// One update.
    pub fn adamw(
        &self,
        update: &AdamW,
        grads: &[f32],
        parameters: &mut [f32],
        first_moment: &mut [f32],
        second_moment: &mut [f32],
    ) -> Result<()> {
        self.slices()?;
        wants("parameters", parameters.len(), &[grads.len()])?;
        wants("first_moment", first_moment.len(), &[grads.len()])?;
        wants("second_moment", second_moment.len(), &[grads.len()])?;
        check_ops(unsafe {
            sys::ckpt_ops_adamw(
                self.as_ptr(),
                &update.to_raw(),
                grads.len(),
                grads.as_ptr(),
                parameters.as_mut_ptr() as *mut _,
                first_moment.as_mut_ptr(),
                second_moment.as_mut_ptr(),
            )
        })
    }

    /// The bits of `Philox::fill_normal`, on all threads.
    pub fn normal(&self, philox: &Philox, mean: f32, stddev: f32, out: &mut [f32]) -> Result<()> {
        self.slices()?;
        check_ops(unsafe { sys::ckpt_ops_normal(self.as_ptr(), &philox.to_raw(), mean, stddev, out.len(), out.as_mut_ptr() as *mut _) })
    }

    /// To the handle's dtype; the output is its bytes.
    pub fn from_float(&self, input: &[f32], out: &mut [u8]) -> Result<()> {
        self.slices()?;
        wants("out", out.len(), &[input.len(), self.element_bytes])?;
        check_ops(unsafe { sys::ckpt_ops_from_float(self.as_ptr(), input.as_ptr(), input.len(), out.as_mut_ptr() as *mut _) })
    }

    /// From the handle's dtype.
    pub fn to_float(&self, input: &[u8], out: &mut [f32]) -> Result<()> {
        self.slices()?;
        wants("input", input.len(), &[out.len(), self.element_bytes])?;
        check_ops(unsafe { sys::ckpt_ops_to_float(self.as_ptr(), input.as_ptr() as *const _, out.len(), out.as_mut_ptr()) })
    }
}
