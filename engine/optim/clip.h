/* clip: how much smaller all gradients are made together.
 *
 * Formula  min(1, max_norm / (norm + 1e-6)), as PyTorch's clip_grad_norm_; a max_norm of 0 means
 *          no clipping. A norm that is not a number stays one, so that it is seen.
 */
#ifndef DT_ENGINE_CLIP_H
#define DT_ENGINE_CLIP_H

#ifdef __cplusplus
extern "C" {
#endif

double dt_clip_factor(double norm, double max_norm);

#ifdef __cplusplus
}
#endif
#endif
