/* clip: computes the factor that clips the gradient norm.
 *
 * Formula  min(1, max_norm / (norm + 1e-6)), as in PyTorch's clip_grad_norm_; a max_norm of 0 means
 *          no clipping. For a norm of NaN the factor is NaN, so that the failure is noticed.
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
