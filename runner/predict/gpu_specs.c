#include "runner/predict/gpu_specs.h"

#include <stddef.h>

#define H100_LINKS "NCCL on NVLink 4: 360 to 370 GB/s (its developers, nccl-tests issues 212, 326)"
#define A100_LINKS "NCCL on NVLink 3: its own model's bound of 235 GB/s (src/graph/tuning.cc)"
#define PCIE_LINKS "NCCL through PCIe 4 and the host: 20 GB/s (nccl-tests issue 178)"

const dt_gpu_spec dt_gpu_specs[] = {
    {"h100", 989.4, 66.9, 80, 3350, true, 360, H100_LINKS},
    {"h200", 989.4, 66.9, 141, 4800, true, 360, H100_LINKS},
    {"a100", 312, 19.5, 80, 2039, true, 235, A100_LINKS},
    {"a100-40gb", 312, 19.5, 40, 1555, true, 235, A100_LINKS},
    {"l40s", 362, 91.6, 48, 864, false, 20, PCIE_LINKS},
    {"rtx4090", 165.2, 82.6, 24, 1008, false, 20, PCIE_LINKS},
};
const char *const dt_gpu_spec_names[] = {"h100", "h200",    "a100", "a100-40gb",
                                         "l40s", "rtx4090", NULL};

const dt_network dt_networks[] = {
    {"ndr", 47, true, "InfiniBand NDR: 46 to 48 GB/s a card (nccl-tests issue 290)"},
    {"hdr", 24, true, "InfiniBand HDR: 96 GB/s over four cards (nccl-tests issue 119)"},
    {"eth100", 11, false, "100 Gb/s Ethernet: line rate less 12 %, assumed"},
    {"eth25", 2.75, false, "25 Gb/s Ethernet: line rate less 12 %, assumed"},
    {"eth10", 1.1, false, "10 Gb/s Ethernet: line rate less 12 %, assumed"},
};
const char *const dt_network_names[] = {"ndr", "hdr", "eth100", "eth25", "eth10", NULL};
