/* A program outside the tree that uses the layers: y = x W^T + b on numbers that are exact in float32. */
#include <ckpt/ops.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const float x[6] = {1, 2, 3, 4, 5, 6}, weight[6] = {1, 0, -1, 2, 1, 0}, bias[2] = {10, 20};
  const float expected[4] = {8, 24, 8, 33};
  float y[4] = {0, 0, 0, 0};
  ckpt_ops *ops = NULL;
  ckpt_ops_info info;
  if (ckpt_ops_create(NULL, &ops) != CKPT_OK || ckpt_ops_linear_forward(ops, x, weight, bias, 2, 3, 2, y) != CKPT_OK) {
    printf("%s\n", ckpt_ops_last_error());
    return 1;
  }
  info.struct_size = sizeof info;
  if (ckpt_ops_get_info(ops, &info) != CKPT_OK || info.thread_count == 0 || memcmp(y, expected, sizeof y) != 0) {
    printf("got %g %g %g %g with %u threads\n", (double)y[0], (double)y[1], (double)y[2], (double)y[3], info.thread_count);
    return 1;
  }
  ckpt_ops_destroy(ops);
  printf("ckpt_ops works with %s\n", info.blas);
  return 0;
}
