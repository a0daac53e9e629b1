/* libckpt: layers (libckpt_ops): kernels, segments made of them, and a GPT made of those.
 *
 * Three levels, each usable without the next: (1) kernels, plain functions on arrays; (2) layers, each a ready
 * ckpt_segment with named slots and the object that goes with it; (3) ckpt_gpt, a whole language model on a tape. Whoever
 * brings his own kernels needs none of this.
 *
 * A handle is for one device, one stream and one element type (dtype). Arrays are dense and row-major, in that device's memory, aligned
 * to their element; 64 bytes is fastest. `void` stands for elements of the handle's dtype: activations, weights, gradients of
 * activations. `float` is float32 whatever the dtype: statistics, losses, gradients of parameters, moments; tokens and targets are
 * int32. Sums are accumulated in float32 or wider. "rows" is the product of the leading dimensions (batch * sequence). `grad` of a
 * parameter is *added to*; the gradient of an input is written, or added to where `accumulate` is not 0. Arrays of one call may not
 * overlap unless the text allows it. NULL where the text does not allow it, and a size of 0 where none makes sense, is
 * INVALID_ARGUMENT.
 *
 * On the CPU the work is done on return. On another device it is enqueued on the handle's stream and nothing waits, but for what says
 * so: ckpt_ops_check, ckpt_ops_norm, and ckpt_gpt_update where it is asked for the norm. A ckpt_philox is host memory everywhere; its
 * step_word is the device's.
 *
 * Bits: every function gives the same bits for the same arguments on the same machine and build, whatever the number of threads
 * and the alignment: work is cut by shape, sums are taken in an order that the shape fixes. Another instruction set (info.isa)
 * or BLAS may give other last bits, and so may another device.
 *
 * Threads: a ckpt_ops on the CPU has its own threads; calls into one handle from several threads take turns. A child made by fork()
 * has none of them and must not use a handle of its parent. */
#ifndef CKPT_OPS_H
#define CKPT_OPS_H

#include "ckpt/tape.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the handle ---- */

typedef struct ckpt_ops ckpt_ops;

/* Instruction sets of the library's own kernels. */
enum { CKPT_ISA_BEST = 0, CKPT_ISA_GENERIC = 1, CKPT_ISA_AVX2 = 2, CKPT_ISA_AVX512 = 3 };

/* Element types. */
enum { CKPT_DTYPE_FLOAT32 = 0, CKPT_DTYPE_BFLOAT16 = 1, CKPT_DTYPE_FLOAT16 = 2 };

typedef struct ckpt_ops_desc {
  uint32_t struct_size;
  uint32_t thread_count; /* the calling thread counts; 0: all hardware threads this process may use; at most 1024. CPU only, else 0 */
  uint32_t isa;          /* CKPT_ISA_*: the best this machine has, or one of them, to repeat a smaller machine's bits. CPU only, else 0 */
  uint32_t dtype;        /* CKPT_DTYPE_*; on the CPU FLOAT32 */
  ckpt_device *device;   /* retained; NULL: the CPU */
  void *stream;          /* of all work (ckpt_device_stream_create); NULL on the CPU, and only there. Arenas of tapes that use the
                            handle's layers have the same. It must live as long as the handle */
} ckpt_ops_desc;

#define CKPT_OPS_DESC_INIT { sizeof(ckpt_ops_desc), 0, 0, 0, NULL, NULL }

/* On the CPU: starts thread_count - 1 threads. desc NULL: all defaults. *out_ops is owned. While a handle on the CPU lives the BLAS
 * that this library is linked with is held at one thread for the whole process: products are cut here, not there.
 * Elsewhere: takes the layers' kernels from the device's plugin, and a little of its memory.
 * Errors: INVALID_ARGUMENT, STRUCT_SIZE, UNSUPPORTED (isa; dtype; a plugin without layers), OUT_OF_MEMORY (no thread could be
 * started), DEVICE (a plugin of another version), and those of ckpt_arena_create. */
CKPT_API ckpt_status ckpt_ops_create(const ckpt_ops_desc *desc, ckpt_ops **out_ops);
/* Drops the caller's count; layers and models keep the handle alive until they are gone. */
CKPT_API void ckpt_ops_destroy(ckpt_ops *ops);

typedef struct ckpt_ops_info {
  uint32_t struct_size;
  uint32_t thread_count;  /* 0 where the device is not the CPU */
  char isa[16];           /* the kernels in use: "avx512", "avx2", "generic"; "sm_90" */
  char blas[64];          /* name and version of the BLAS */
  uint32_t dtype;         /* CKPT_DTYPE_* */
  uint32_t device_kind;   /* CKPT_DEVICE_KIND_* */
} ckpt_ops_info;

/* Fills *out_info; its struct_size must be set. */
CKPT_API ckpt_status ckpt_ops_get_info(const ckpt_ops *ops, ckpt_ops_info *out_info);

/* Waits for the stream, then tells what only the device could see. On the CPU there is nothing left to tell.
 * Errors: INVALID_ARGUMENT names the first token or target out of range since the last check (its row was NaN); those of the device. */
CKPT_API ckpt_status ckpt_ops_check(ckpt_ops *ops);

/* As ckpt_last_error, for the functions of this header: this thread's text for their latest failure. What a layer reports
 * inside a frame is in ckpt_last_error. */
CKPT_API const char *ckpt_ops_last_error(void);

/* ---- level 1: kernels. Errors: INVALID_ARGUMENT (argument, value, expectation), OVERFLOW (one of several sizes is 2^31 or more; more
 * than 2^48 elements); UNSUPPORTED on a device whose kernels have a limit of their own: see attention ---- */

/* out[b,t,:] = token_table[tokens[b,t],:] + position_table[t,:]. token_table [vocabulary, channels], position_table [sequence,
 * channels] or NULL. A token outside 0 .. vocabulary-1 is INVALID_ARGUMENT, named with its place (on a device by ckpt_ops_check); out is
 * then undefined. */
CKPT_API ckpt_status ckpt_ops_embedding_forward(ckpt_ops *ops, const int32_t *tokens, const void *token_table,
                                                const void *position_table, size_t batch, size_t sequence,
                                                size_t channels, size_t vocabulary, void *out);
/* Adds to token_grad and position_grad (NULL: not wanted). */
CKPT_API ckpt_status ckpt_ops_embedding_backward(ckpt_ops *ops, const int32_t *tokens, const void *out_grad,
                                                 size_t batch, size_t sequence, size_t channels, size_t vocabulary,
                                                 float *token_grad, float *position_grad);

/* out [rows, outputs] = in [rows, inputs] * weight^T + bias. weight [outputs, inputs], bias [outputs] or NULL. */
CKPT_API ckpt_status ckpt_ops_linear_forward(ckpt_ops *ops, const void *in, const void *weight, const void *bias,
                                             size_t rows, size_t inputs, size_t outputs, void *out);
/* out = residual + dropout(in * weight^T + bias): one pass over memory less. residual may equal out. dropout_probability 0: none,
 * philox may be NULL. The mask is that of ckpt_ops_dropout_forward over [rows, outputs]. */
CKPT_API ckpt_status ckpt_ops_linear_residual_forward(ckpt_ops *ops, const void *in, const void *weight,
                                                      const void *bias, const void *residual,
                                                      float dropout_probability, const ckpt_philox *philox, size_t rows,
                                                      size_t inputs, size_t outputs, void *out);
/* in_grad = out_grad * weight (NULL: not wanted); weight_grad += out_grad^T * in (NULL: not wanted); bias_grad += column sums
 * (NULL: not wanted). `in` is read for weight_grad only, `weight` for in_grad only: else they may be NULL. */
CKPT_API ckpt_status ckpt_ops_linear_backward(ckpt_ops *ops, const void *in, const void *weight,
                                              const void *out_grad, size_t rows, size_t inputs, size_t outputs,
                                              void *in_grad, uint32_t accumulate, float *weight_grad,
                                              float *bias_grad);

/* out = (in - mean) * rstd * weight + bias by row; mean and rstd [rows]; variance over channels (biased). out may equal in. */
CKPT_API ckpt_status ckpt_ops_layernorm_forward(ckpt_ops *ops, const void *in, const void *weight, const void *bias,
                                                size_t rows, size_t channels, float epsilon, void *out, float *mean,
                                                float *rstd);
/* in_grad = residual_grad + the gradient through the norm. residual_grad NULL: zero. in_grad may equal out_grad or residual_grad.
 * weight_grad and bias_grad are added to (NULL: not wanted). */
CKPT_API ckpt_status ckpt_ops_layernorm_backward(ckpt_ops *ops, const void *in, const float *mean, const float *rstd,
                                                 const void *weight, const void *out_grad,
                                                 const void *residual_grad, size_t rows, size_t channels,
                                                 void *in_grad, uint32_t accumulate, float *weight_grad,
                                                 float *bias_grad);

/* out = gelu(in + bias), bias [columns] or NULL. The tanh form, PyTorch's gelu(approximate="tanh"):
 * 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). out may equal in. */
CKPT_API ckpt_status ckpt_ops_gelu_forward(ckpt_ops *ops, const void *in, const void *bias, size_t rows, size_t columns,
                                           void *out);
/* in_grad = gelu'(in + bias) * out_grad; bias_grad += its column sums (NULL: not wanted). in_grad may equal in or out_grad. */
CKPT_API ckpt_status ckpt_ops_gelu_backward(ckpt_ops *ops, const void *in, const void *bias, const void *out_grad,
                                            size_t rows, size_t columns, void *in_grad, uint32_t accumulate,
                                            float *bias_grad);

/* Causal self-attention, softmax(Q K^T / sqrt(channels / heads)) V. qkv [batch, sequence, 3, heads, channels / heads], out
 * [batch, sequence, channels]. Dropout on the weights: element ((b * heads + h) * sequence + i) * sequence + j of the mask of
 * ckpt_ops_dropout_forward; dropout_probability 0: none, philox may be NULL.
 * On CUDA a head has at most 256 channels (else UNSUPPORTED; layers and models say so when they are created).
 * Plain: keeps weights [batch, heads, sequence, sequence] (before dropout; zero above the diagonal). */
CKPT_API ckpt_status ckpt_ops_attention_forward(ckpt_ops *ops, const void *qkv, size_t batch, size_t sequence,
                                                size_t heads, size_t channels, float dropout_probability,
                                                const ckpt_philox *philox, void *weights, void *out);
CKPT_API ckpt_status ckpt_ops_attention_backward(ckpt_ops *ops, const void *qkv, const void *weights,
                                                 const void *out_grad, size_t batch, size_t sequence, size_t heads,
                                                 size_t channels, float dropout_probability,
                                                 const ckpt_philox *philox, void *qkv_grad);
/* Tiled (Dao et al. 2022, arXiv 2205.14135): keeps lse [batch, heads, sequence], the logarithm of each row's sum of
 * exponentials; the weights are made again, tile by tile, in backward. */
CKPT_API ckpt_status ckpt_ops_attention_tiled_forward(ckpt_ops *ops, const void *qkv, size_t batch, size_t sequence,
                                                      size_t heads, size_t channels, float dropout_probability,
                                                      const ckpt_philox *philox, float *lse, void *out);
CKPT_API ckpt_status ckpt_ops_attention_tiled_backward(ckpt_ops *ops, const void *qkv, const void *out,
                                                       const float *lse, const void *out_grad, size_t batch,
                                                       size_t sequence, size_t heads, size_t channels,
                                                       float dropout_probability, const ckpt_philox *philox,
                                                       void *qkv_grad);

/* out = residual + in * mask / (1 - probability); residual NULL: zero. The mask is ckpt_philox_bernoulli(philox, 0, count,
 * 1 - probability) and is never stored. probability in [0, 1); 0: philox may be NULL. out may equal in or residual. */
CKPT_API ckpt_status ckpt_ops_dropout_forward(ckpt_ops *ops, const void *in, const void *residual, float probability,
                                              const ckpt_philox *philox, size_t count, void *out);
/* in_grad = out_grad * mask / (1 - probability). in_grad may equal out_grad. */
CKPT_API ckpt_status ckpt_ops_dropout_backward(ckpt_ops *ops, const void *out_grad, float probability,
                                               const ckpt_philox *philox, size_t count, void *in_grad,
                                               uint32_t accumulate);

/* out = a + b. out may equal a or b. */
CKPT_API ckpt_status ckpt_ops_add(ckpt_ops *ops, const void *a, const void *b, size_t count, void *out);

/* *out_loss = mean over the rows whose target is not ignore_index of -log softmax(logits)[target]; 0 where all are ignored.
 * lse [rows]: the logarithm of each row's sum of exponentials. logits [rows, vocabulary]. Another target outside 0 .. vocabulary-1
 * is INVALID_ARGUMENT, named with its place (on a device by ckpt_ops_check). out_loss is the device's memory like the rest. */
CKPT_API ckpt_status ckpt_ops_cross_entropy_forward(ckpt_ops *ops, const void *logits, const int32_t *targets,
                                                    size_t rows, size_t vocabulary, int32_t ignore_index, float *lse,
                                                    float *out_loss);
/* logits_grad = loss_grad * d loss / d logits; may equal logits. */
CKPT_API ckpt_status ckpt_ops_cross_entropy_backward(ckpt_ops *ops, const void *logits, const int32_t *targets,
                                                     const float *lse, size_t rows, size_t vocabulary,
                                                     int32_t ignore_index, float loss_grad, void *logits_grad);

/* The L2 norm of `count` values, as a number of the host's: waits for the stream. */
CKPT_API ckpt_status ckpt_ops_norm(ckpt_ops *ops, const float *values, size_t count, double *out_norm);

/* Adam with decoupled weight decay (Loshchilov, Hutter 2019, arXiv 1711.05101), as PyTorch's AdamW. */
typedef struct ckpt_adamw_desc {
  uint32_t struct_size;
  float learning_rate;
  float beta1;         /* 0: 0.9 */
  float beta2;         /* 0: 0.999 */
  float epsilon;       /* 0: 1e-8 */
  float weight_decay;
  float max_norm;      /* ckpt_gpt_update: gradients are scaled down to this L2 norm; 0: never. ckpt_ops_adamw: must be 0 */
  float grad_scale;    /* gradients are multiplied by it before use; 0: 1 */
  uint64_t step;       /* of this update, from 1 */
  float *master_weights; /* the parameters in float32: these are updated, and the parameters become their rounded copy. Needed where the
                            dtype is not FLOAT32, else NULL. They start as ckpt_ops_to_float of the parameters */
} ckpt_adamw_desc;

#define CKPT_ADAMW_DESC_INIT { sizeof(ckpt_adamw_desc), 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0, NULL }

/* One update of `count` parameters; first_moment and second_moment [count] start as zeros and belong to the caller. */
CKPT_API ckpt_status ckpt_ops_adamw(ckpt_ops *ops, const ckpt_adamw_desc *desc, size_t count, const float *grads,
                                    void *parameters, float *first_moment, float *second_moment);

/* Normal values: the bits of ckpt_philox_normal(philox, 0, count, mean, stddev, out), on all threads; rounded to the dtype. */
CKPT_API ckpt_status ckpt_ops_normal(ckpt_ops *ops, const ckpt_philox *philox, float mean, float stddev, size_t count,
                                     void *out);

/* out = in, rounded to the handle's dtype (to nearest, ties to even); and back. Copies where that is FLOAT32. */
CKPT_API ckpt_status ckpt_ops_from_float(ckpt_ops *ops, const float *in, size_t count, void *out);
CKPT_API ckpt_status ckpt_ops_to_float(ckpt_ops *ops, const void *in, size_t count, float *out);

/* ---- level 2: layers as segments. Frames of an arena with another stream than the handle's fail with INVALID_ARGUMENT ---- */

typedef struct ckpt_layer ckpt_layer;

enum { CKPT_ATTENTION_PLAIN = 0, CKPT_ATTENTION_TILED = 1 };

/* A parameter tensor of a layer or model. Offsets and counts are in elements of the flat arrays given to bind. */
typedef struct ckpt_tensor_info {
  uint32_t struct_size;
  uint32_t decays;        /* 1: a matrix, weight decay applies; 0: a bias or a norm's parameter */
  size_t offset;
  size_t count;           /* rows * columns */
  size_t rows;            /* outputs, table entries; 1 for vectors */
  size_t columns;
  float init_mean;        /* of ckpt_layer_init and ckpt_gpt_init */
  float init_stddev;
  char name[48];          /* "block3.qkv.weight" */
} ckpt_tensor_info;

/* Input: tokens [batch, sequence] int32. Output: [batch, sequence, channels]. Parameters: token table, position table. Draws: site 0. */
typedef struct ckpt_layer_embedding_desc {
  uint32_t struct_size;
  float dropout_probability;
  size_t batch;
  size_t sequence;
  size_t channels;
  size_t vocabulary;
} ckpt_layer_embedding_desc;

#define CKPT_LAYER_EMBEDDING_DESC_INIT { sizeof(ckpt_layer_embedding_desc), 0.0f, 0, 0, 0, 0 }

/* Copies the desc. *out_layer is owned. Errors: INVALID_ARGUMENT (names field, value and what was expected), STRUCT_SIZE, OVERFLOW. */
CKPT_API ckpt_status ckpt_layer_embedding_create(ckpt_ops *ops, const ckpt_layer_embedding_desc *desc,
                                                 ckpt_layer **out_layer);

/* A transformer block, norms first: x1 = x + dropout(proj(attention(qkv(norm(x))))); out = x1 + dropout(fc2(gelu(fc1(norm(x1))))).
 * Input and output: [batch, sequence, channels]. Slots, in order: ln1, ln1_mean, ln1_rstd (one group); qkv; att [batch, heads,
 * sequence, sequence] (PLAIN) or lse (TILED), with att_out one group; res1 (= x1); ln2, ln2_mean, ln2_rstd (one group); fc1
 * (before its bias) and gelu, both [batch, sequence, hidden]. Draws: site 0 attention, 1 and 2 the two residual dropouts.
 * Parameters: ln1 weight, bias; qkv weight [3 channels, channels], bias; proj weight, bias; ln2 weight, bias; fc1 weight
 * [hidden, channels], bias; fc2 weight [channels, hidden], bias. */
typedef struct ckpt_layer_block_desc {
  uint32_t struct_size;
  uint32_t attention;              /* CKPT_ATTENTION_* */
  size_t batch;
  size_t sequence;
  size_t channels;
  size_t heads;                    /* divides channels */
  size_t hidden;                   /* of the feed-forward part; 0: 4 * channels */
  float dropout_probability;       /* of the two residual branches */
  float attention_dropout_probability;
  float epsilon;                   /* 0: 1e-5 */
  float residual_stddev;           /* of proj and fc2 at init; 0: 0.02 */
} ckpt_layer_block_desc;

#define CKPT_LAYER_BLOCK_DESC_INIT { sizeof(ckpt_layer_block_desc), 0, 0, 0, 0, 0, 0, 0.0f, 0.0f, 0.0f, 0.0f }

/* As ckpt_layer_embedding_create. */
CKPT_API ckpt_status ckpt_layer_block_create(ckpt_ops *ops, const ckpt_layer_block_desc *desc, ckpt_layer **out_layer);

/* Final norm, product with the vocabulary's weight and mean cross-entropy. Inputs: x [rows, channels]; targets [rows] int32.
 * Output: the loss, one float32 in `loss` (the caller's memory, or the layer's own: ckpt_layer_loss). Its gradient (ckpt_backward's
 * output_grads) is one float32: 1 where it is NULL, 1 / n to accumulate over n micro-batches. Both are memory of the handle's device.
 * Slots: ln, ln_mean, ln_rstd (one group); logits [rows, vocabulary]; lse, in one
 * group with the loss. With chunk_rows > 0 there is no slot logits: they exist for chunk_rows rows at a time, in scratch, and are
 * made again in backward. Parameters: norm weight, bias; if not tied, weight [vocabulary, channels]. */
typedef struct ckpt_layer_head_desc {
  uint32_t struct_size;
  uint32_t tied;          /* 1: the weight is another layer's: ckpt_layer_bind_tied */
  size_t rows;
  size_t channels;
  size_t vocabulary;
  size_t chunk_rows;
  float *loss;            /* device memory, retained until the layer is gone; NULL: the layer's own (a device has room for 256) */
  int32_t ignore_index;   /* 0 is a target like any other: use -1 */
  float epsilon;          /* 0: 1e-5 */
} ckpt_layer_head_desc;

#define CKPT_LAYER_HEAD_DESC_INIT { sizeof(ckpt_layer_head_desc), 0, 0, 0, 0, 0, NULL, -1, 0.0f }

/* As ckpt_layer_embedding_create. */
CKPT_API ckpt_status ckpt_layer_head_create(ckpt_ops *ops, const ckpt_layer_head_desc *desc, ckpt_layer **out_layer);

/* Address of a head's latest loss, in the memory of the handle's device (host memory on the CPU; elsewhere ckpt_device_copy brings
 * it); borrowed, as long as the layer lives. NULL for NULL and for other layers. */
CKPT_API const float *ckpt_layer_loss(const ckpt_layer *layer);

/* Small layers with one input and one output. linear: [rows, inputs] -> [rows, outputs], parameters weight and (bias not 0) bias.
 * layernorm: slots mean and rstd in one group with the output; epsilon 0: 1e-5. gelu, dropout: `count` elements; dropout draws at site 0. */
CKPT_API ckpt_status ckpt_layer_linear_create(ckpt_ops *ops, size_t rows, size_t inputs, size_t outputs, uint32_t bias,
                                              ckpt_layer **out_layer);
CKPT_API ckpt_status ckpt_layer_layernorm_create(ckpt_ops *ops, size_t rows, size_t channels, float epsilon,
                                                 ckpt_layer **out_layer);
CKPT_API ckpt_status ckpt_layer_gelu_create(ckpt_ops *ops, size_t count, ckpt_layer **out_layer);
CKPT_API ckpt_status ckpt_layer_dropout_create(ckpt_ops *ops, size_t count, float probability, ckpt_layer **out_layer);

/* Drops the caller's count; recordings made with ckpt_layer_run keep the layer alive until they are done with it. */
CKPT_API void ckpt_layer_destroy(ckpt_layer *layer);

/* Elements of `parameters`, and of `gradients`. 0 for a layer without any, and for NULL. */
CKPT_API size_t ckpt_layer_parameter_count(const ckpt_layer *layer);
/* Number of parameter tensors. */
CKPT_API uint32_t ckpt_layer_tensor_count(const ckpt_layer *layer);
/* Fills *out_info; its struct_size must be set. Error: INVALID_ARGUMENT (index out of range). */
CKPT_API ckpt_status ckpt_layer_get_tensor(const ckpt_layer *layer, uint32_t index, ckpt_tensor_info *out_info);

/* Both arrays have parameter_count elements (parameters of the handle's dtype, gradients float32) and are retained until bound anew
 * or the layer is gone. gradients NULL: forward only (a backward then fails its frame). Each backward adds to the gradients once. */
CKPT_API ckpt_status ckpt_layer_bind(ckpt_layer *layer, void *parameters, float *gradients);
/* A tied head's weight [vocabulary, channels] and its gradient (another layer's token table). Error: STATE (not a tied head). */
CKPT_API ckpt_status ckpt_layer_bind_tied(ckpt_layer *layer, const void *weight, float *weight_grad);
/* Writes the bound parameters: tensor k draws normal values from (seed, segment first_tensor + k). Error: STATE (not bound). */
CKPT_API ckpt_status ckpt_layer_init(ckpt_layer *layer, uint64_t seed, uint64_t first_tensor);

enum { CKPT_LAYER_EVALUATE = 1 /* no dropout */ };

/* The layer's segment: borrowed, as long as the layer lives. NULL for NULL. */
CKPT_API const ckpt_segment *ckpt_layer_segment(const ckpt_layer *layer);
/* The `user` that goes into a ckpt_call with that segment. flags: CKPT_LAYER_EVALUATE. Borrowed: as long as the layer lives. */
CKPT_API void *ckpt_layer_user(ckpt_layer *layer, uint32_t flags);
/* ckpt_segment_run with this layer's segment; `inputs` as the layer's text has them; one output. Parameters are watched: under
 * CKPT_CHECK_INPUTS a change of them between forward and backward is an error. Errors: STATE (not bound), INVALID_ARGUMENT (an
 * input of fewer bytes than the layer reads), and those of ckpt_segment_run. */
CKPT_API ckpt_status ckpt_layer_run(ckpt_layer *layer, ckpt_tape *tape, const ckpt_buffer *inputs, uint32_t input_count,
                                    uint32_t flags, ckpt_buffer *out_output);

/* ---- level 3: a GPT ---- */

typedef struct ckpt_gpt ckpt_gpt;

typedef struct ckpt_gpt_desc {
  uint32_t struct_size;
  uint32_t attention;        /* CKPT_ATTENTION_* */
  size_t layers;             /* blocks */
  size_t heads;              /* divides channels */
  size_t channels;
  size_t sequence;
  size_t batch;
  size_t vocabulary;
  size_t head_chunk_rows;    /* as chunk_rows of the head; 0: all rows at once */
  float dropout_probability; /* of embedding, attention weights and residual branches; in [0, 1) */
  uint32_t untied;           /* 1: the head has a weight of its own; 0: it is the token table */
} ckpt_gpt_desc;

#define CKPT_GPT_DESC_INIT { sizeof(ckpt_gpt_desc), 0, 0, 0, 0, 0, 0, 0, 0, 0.0f, 0 }

/* Embedding, `layers` blocks (hidden size 4 * channels), head. The model has no parameters' memory of its own.
 * *out_gpt is owned. Errors: INVALID_ARGUMENT (names field, value and what was expected), STRUCT_SIZE, OVERFLOW, OUT_OF_MEMORY. */
CKPT_API ckpt_status ckpt_gpt_create(ckpt_ops *ops, const ckpt_gpt_desc *desc, ckpt_gpt **out_gpt);
CKPT_API void ckpt_gpt_destroy(ckpt_gpt *gpt);

/* Elements, and tensors, in the flat arrays: embedding, block 0, block 1, ..., head, each as its layer has them. */
CKPT_API size_t ckpt_gpt_parameter_count(const ckpt_gpt *gpt);
CKPT_API uint32_t ckpt_gpt_tensor_count(const ckpt_gpt *gpt);
/* Fills *out_info; its struct_size must be set. Error: INVALID_ARGUMENT (index out of range). */
CKPT_API ckpt_status ckpt_gpt_get_tensor(const ckpt_gpt *gpt, uint32_t index, ckpt_tensor_info *out_info);

/* As ckpt_layer_bind. The caller zeroes the gradients before the first micro-batch of each update. */
CKPT_API ckpt_status ckpt_gpt_bind(ckpt_gpt *gpt, void *parameters, float *gradients);
/* Weights normal (0, 0.02), those of proj and fc2 by sqrt(2 layers) smaller (GPT-2); biases 0; norms 1 and 0. */
CKPT_API ckpt_status ckpt_gpt_init(ckpt_gpt *gpt, uint64_t seed);

/* Records one forward pass: tokens and targets [batch, sequence] int32 on the handle's device, unchanged until the recording ends
 * (NULL in a dry recording). *out_loss is the loss as a boundary, to be given to ckpt_backward with its gradient (see the head); its
 * value is at ckpt_gpt_loss until the next record. A recording may have been begun with ckpt_tape_begin. Segments are named "embedding", "block",
 * "head". flags: CKPT_LAYER_EVALUATE. Errors: STATE (not bound), INVALID_ARGUMENT, and those of ckpt_segment_run. */
CKPT_API ckpt_status ckpt_gpt_record(ckpt_gpt *gpt, ckpt_tape *tape, const int32_t *tokens, const int32_t *targets,
                                     uint32_t flags, ckpt_buffer *out_loss);
/* Address of the latest loss, as ckpt_layer_loss; borrowed, as long as the model lives. NULL for NULL. */
CKPT_API const float *ckpt_gpt_loss(const ckpt_gpt *gpt);

/* AdamW over the bound parameters and gradients, weight decay on matrices alone, after scaling to max_norm. Moments and master
 * weights have parameter_count floats and belong to the caller. *out_norm (may be NULL): the gradients' L2 norm (times grad_scale)
 * before the scaling, a number of the host's: on a device it is worth a wait for the stream, without it nothing waits. The norm is
 * computed only if it is asked for or max_norm is not 0. */
CKPT_API ckpt_status ckpt_gpt_update(ckpt_gpt *gpt, const ckpt_adamw_desc *desc, float *first_moment, float *second_moment,
                                     double *out_norm);

#ifdef __cplusplus
}
#endif
#endif
