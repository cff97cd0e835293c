/* gpu_specs: lists the rates of GPUs and networks on which predictions are based.
 *
 * Sources    NVIDIA's data sheets of H100 and H200 (SXM), A100 (SXM), L40S, and the Ada GPU
 *            architecture paper (RTX 4090, fp32 sums); matrix rates without sparsity
 * Links      bus bandwidth that NCCL reaches for large gathers among the GPUs of a node, as its
 *            developers and users report it (sources in gpu_specs.c). An all-reduce with NVLink
 *            SHARP reaches more (480 GB/s on 8 H100); this is left out, so that predictions are not
 *            too optimistic
 */
#ifndef DT_RUNNER_PREDICT_GPU_SPECS_H
#define DT_RUNNER_PREDICT_GPU_SPECS_H

#include <stdbool.h>

typedef struct dt_gpu_spec {
    const char *name;                  /* the value of --card */
    double half_tflops, single_tflops; /* bf16 and fp16 with fp32 sums; fp32 without tensor cores */
    double memory_gb, memory_gbs;      /* 1e9 bytes, and 1e9 bytes per second */
    bool nvlink;
    double node_gbs; /* NCCL's bus bandwidth within a node */
    const char *node_source;
} dt_gpu_spec;

extern const dt_gpu_spec dt_gpu_specs[];
/* Names, for --card; ends with NULL, in the order of the table. */
extern const char *const dt_gpu_spec_names[];

/* A network between nodes. */
typedef struct dt_network {
    const char *name;
    double nic_gbs; /* what one network card delivers */
    bool per_gpu;   /* each GPU has a network card; else each node has one */
    const char *source;
} dt_network;

extern const dt_network dt_networks[];
extern const char *const dt_network_names[];

#endif
