/* metric_kinds: describes each metric that dtrun records. */
#include "base/metric_kinds.h"

#include <string.h>

/* clang-format off */
const dt_metric_kind dt_metric_kinds[DT_METRIC_COUNT] = {
    [DT_METRIC_LOSS] = {"loss", "Loss", "", "loss", DT_BETTER_LOW, DT_FROM_STEPS, false,
        "mean training loss of the last step, in nats a token (cross entropy) or squared error"},
    [DT_METRIC_VALID_LOSS] = {"valid_loss", "Validation loss", "", "loss", DT_BETTER_LOW, DT_FROM_EVALUATIONS, false,
        "the same over the validation data"},
    [DT_METRIC_VALID_BLEU] = {"valid_bleu", "Validation BLEU", "", "bleu", DT_BETTER_HIGH, DT_FROM_EVALUATIONS, false,
        "BLEU of the translated validation sentences, 0 to 100 (`data.bleu`)"},
    [DT_METRIC_LEARNING_RATE] = {"learning_rate", "Learning rate", "", "rate", DT_BETTER_NEITHER, DT_FROM_STEPS, false,
        "learning rate of the last step"},
    [DT_METRIC_GRADIENT_NORM] = {"gradient_norm", "Gradient norm", "", "norm", DT_BETTER_NEITHER, DT_FROM_STEPS, false,
        "L2 norm of all gradients before clipping"},
    [DT_METRIC_TOKENS_PER_SECOND] = {"tokens_per_second", "Tokens/s", "1/s", "speed", DT_BETTER_HIGH, DT_FROM_STEPS,
        false, "tokens (or rows) of all ranks a second"},
    [DT_METRIC_STEP_SECONDS] = {"step_seconds", "Step time", "s", "step-time", DT_BETTER_LOW, DT_FROM_STEPS, false,
        "mean time of a step"},
    [DT_METRIC_LINES_PER_SECOND] = {"lines_per_second", "Lines/s", "1/s", "", DT_BETTER_HIGH, DT_FROM_SUPERVISOR, false,
        "lines of a run of `generate` or `score` a second, all ranks"},
    [DT_METRIC_SLOWEST_RANK] = {"slowest_rank", "Slowest rank", "", "", DT_BETTER_NEITHER, DT_FROM_SUPERVISOR, false,
        "number of the rank that the others wait for"},
    [DT_METRIC_SLOWEST_SECONDS] = {"slowest_seconds", "Wait for the slowest rank", "s", "", DT_BETTER_NEITHER,
        DT_FROM_SUPERVISOR, false, "time of a step that the others wait for it"},
    [DT_METRIC_GPU_BUSY_PERCENT] = {"gpu_busy_percent", "GPU utilization, %", "%", "", DT_BETTER_NEITHER,
        DT_FROM_EACH_RANK, true, "share of time in which the GPU ran a kernel"},
    [DT_METRIC_GPU_USED_BYTES] = {"gpu_used_bytes", "GPU memory", "bytes", "", DT_BETTER_NEITHER, DT_FROM_EACH_RANK,
        true, "GPU memory in use by all processes"},
    [DT_METRIC_GPU_TEMPERATURE_C] = {"gpu_temperature_c", "GPU temperature, °C", "°C", "", DT_BETTER_NEITHER,
        DT_FROM_EACH_RANK, true, "temperature of the GPU"},
    [DT_METRIC_GPU_POWER_WATTS] = {"gpu_power_watts", "GPU power, W", "W", "", DT_BETTER_NEITHER, DT_FROM_EACH_RANK,
        true, "power draw of the GPU"},
    [DT_METRIC_OUTSIDE_SECONDS] = {"outside_seconds", "Time outside steps", "s", "", DT_BETTER_NEITHER, DT_FROM_STEPS,
        true, "time of a step that rank 0 spent neither in forward, backward and update nor in collectives"},
    [DT_METRIC_FLOPS_PER_SECOND] = {"flops_per_second", "FLOP/s", "1/s", "", DT_BETTER_NEITHER, DT_FROM_STEPS, true,
        "floating-point operations of all ranks a second, by the formula of the model (engine/model/model.h)"},
    [DT_METRIC_MATMUL_FLOPS_PER_SECOND] = {"matmul_flops_per_second", "FLOP/s of matmuls", "1/s", "",
        DT_BETTER_NEITHER, DT_FROM_STEPS, true, "rate of matrix products on all ranks, measured at the start"},
    [DT_METRIC_LEAST_STEP_SECONDS] = {"least_step_seconds", "Fastest possible step", "s", "", DT_BETTER_NEITHER,
        DT_FROM_STEPS, true, "time of the matrix products of a step at that rate"},
    [DT_METRIC_HELD_BYTES] = {"held_bytes", "Memory in use", "bytes", "", DT_BETTER_NEITHER, DT_FROM_STEPS, true,
        "weights, gradients and optimizer state that rank 0 holds"},
    [DT_METRIC_SENT_BYTES] = {"sent_bytes", "Bytes sent a step", "bytes", "", DT_BETTER_NEITHER, DT_FROM_STEPS, true,
        "bytes that rank 0 sends in a step"},
    [DT_METRIC_LOSS_SCALE] = {"loss_scale", "Loss scale", "", "", DT_BETTER_NEITHER, DT_FROM_STEPS, true,
        "factor of the loss in fp16"},
    [DT_METRIC_SKIPPED_STEPS] = {"skipped_steps", "Skipped steps", "", "", DT_BETTER_NEITHER, DT_FROM_STEPS, true,
        "steps without an update so far, because gradients overflowed in fp16"},
    [DT_METRIC_REWARD_MARGIN] = {"reward_margin", "Reward margin", "", "", DT_BETTER_HIGH, DT_FROM_STEPS, false,
        "`dpo`: mean of beta times by how much the chosen answers' log ratios to the base exceed the rejected ones'"},
    [DT_METRIC_REWARD_ACCURACY] = {"reward_accuracy", "Reward accuracy", "", "", DT_BETTER_HIGH, DT_FROM_STEPS, false,
        "`dpo`: share of pairs whose margin is positive"},
    [DT_METRIC_CPU_PERCENT] = {DT_METRIC_SYSTEM "cpu_percent", "Processors, %", "%", "",
        DT_BETTER_NEITHER, DT_FROM_NODES, true,
        "processor time that all processes use, 100: all processors that the node has for the run"},
    [DT_METRIC_RUN_CPU_PERCENT] = {DT_METRIC_SYSTEM "run_cpu_percent", "Processors of this run, %", "%", "",
        DT_BETTER_NEITHER, DT_FROM_NODES, true,
        "processor time that the processes of the run use, 100: all processors"},
    [DT_METRIC_MEMORY_USED_BYTES] = {DT_METRIC_SYSTEM "memory_used_bytes", "Memory", "bytes", "",
        DT_BETTER_NEITHER, DT_FROM_NODES, true,
        "memory in use by all processes, without file cache"},
    [DT_METRIC_MEMORY_TOTAL_BYTES] = {DT_METRIC_SYSTEM "memory_total_bytes", "Memory in total", "bytes", "",
        DT_BETTER_NEITHER, DT_FROM_NODES, true,
        "memory of the node, or the limit of its container or job"},
    [DT_METRIC_RUN_MEMORY_BYTES] = {DT_METRIC_SYSTEM "run_memory_bytes", "Memory of this run", "bytes", "",
        DT_BETTER_NEITHER, DT_FROM_NODES, true,
        "memory of the processes of the run that is neither shared nor of files"},
    [DT_METRIC_NODE_GPU_BUSY_PERCENT] = {DT_METRIC_SYSTEM "gpu_busy_percent", "GPU utilization, %", "%", "",
        DT_BETTER_NEITHER, DT_FROM_NODE_GPUS, true,
        "share of time in which the GPU ran a kernel"},
    [DT_METRIC_NODE_GPU_USED_BYTES] = {DT_METRIC_SYSTEM "gpu_used_bytes", "GPU memory", "bytes", "",
        DT_BETTER_NEITHER, DT_FROM_NODE_GPUS, true,
        "GPU memory in use by all processes"},
    [DT_METRIC_NODE_GPU_TOTAL_BYTES] = {DT_METRIC_SYSTEM "gpu_total_bytes", "GPU memory in total", "bytes", "",
        DT_BETTER_NEITHER, DT_FROM_NODE_GPUS, true,
        "memory of the GPU"},
    [DT_METRIC_NODE_GPU_POWER_WATTS] = {DT_METRIC_SYSTEM "gpu_power_watts", "GPU power, W", "W", "",
        DT_BETTER_NEITHER, DT_FROM_NODE_GPUS, true,
        "power draw of the GPU"},
    [DT_METRIC_NODE_GPU_TEMPERATURE_C] = {DT_METRIC_SYSTEM "gpu_temperature_c", "GPU temperature, °C", "°C", "",
        DT_BETTER_NEITHER, DT_FROM_NODE_GPUS, true,
        "temperature of the GPU"},
    [DT_METRIC_DISK_READ_BYTES_PER_SECOND] = {DT_METRIC_SYSTEM "disk_read_bytes_per_second", "Disk reads per second", "bytes/s", "",
        DT_BETTER_NEITHER, DT_FROM_NODES, true,
        "bytes that all disks of the node read a second"},
    [DT_METRIC_DISK_WRITTEN_BYTES_PER_SECOND] = {DT_METRIC_SYSTEM "disk_written_bytes_per_second", "Disk writes per second", "bytes/s", "",
        DT_BETTER_NEITHER, DT_FROM_NODES, true,
        "bytes that all disks of the node write a second"},
    [DT_METRIC_DISK_FREE_BYTES] = {DT_METRIC_SYSTEM "disk_free_bytes", "Free disk space", "bytes", "",
        DT_BETTER_NEITHER, DT_FROM_NODES, true,
        "space left on the file system with the folder of the run"},
    [DT_METRIC_RECEIVED_BYTES_PER_SECOND] = {DT_METRIC_SYSTEM "received_bytes_per_second", "Network in per second", "bytes/s", "",
        DT_BETTER_NEITHER, DT_FROM_NODES, true,
        "bytes that all network interfaces receive a second"},
    [DT_METRIC_SENT_BYTES_PER_SECOND] = {DT_METRIC_SYSTEM "sent_bytes_per_second", "Network out per second", "bytes/s", "",
        DT_BETTER_NEITHER, DT_FROM_NODES, true,
        "bytes that all network interfaces send a second"},
};
/* clang-format on */

const char *const dt_metric_high_words[] = {
    "per_second", "accuracy", "/acc", "_acc", "exact_match", "utilization", "bleu", "reward", NULL};

bool dt_metric_more_is_better(const char *name)
{
    for (size_t i = 0; dt_metric_high_words[i] != NULL; i++)
        if (strstr(name, dt_metric_high_words[i]) != NULL)
            return true;
    return false;
}

/* --- docs/metrics.md and web/page/metric_table.js */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const better_words[] = {"", "lower", "higher"};

void dt_metric_doc(dt_strbuf *out)
{
    static const char *const froms[] = {
        "rank 0, every `log.every` steps",     "rank 0, each evaluation",
        "every rank with an NVIDIA GPU",       "the supervisor, from all ranks",
        "the agent of every node, every 10 s", "the agent of every node, every 10 s"};
    static const char *const ends[] = {[DT_FROM_EACH_RANK] = "_rank_N",
                                       [DT_FROM_NODES] = "_node_N",
                                       [DT_FROM_NODE_GPUS] = "_node_N_gpu_M"};

    dt_strbuf_add_str(
        out,
        "# Metrics\n\n"
        "<!-- Generated by dtrun-metric-doc from base/metric_kinds.c; a test compares. -->\n\n"
        "The metrics that dtrun records. Runs that were imported can have others, which are shown "
        "under their own names.\n\n"
        "| name | unit | better | reported by | what |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < COUNT(dt_metric_kinds); i++) {
        const dt_metric_kind *kind = &dt_metric_kinds[i];

        dt_strbuf_add_fmt(out, "| `%s%s` | %s | %s | %s | %s |\n", kind->name,
                          ends[kind->source] != NULL ? ends[kind->source] : "", kind->unit,
                          better_words[kind->better], froms[kind->source], kind->help);
    }
    dt_strbuf_add_str(
        out,
        "\nThe metrics of nodes (`system/`) are points by time: their step is the time in seconds "
        "since 1970. `log.system: false` turns them off. Lists of all metrics leave them out; "
        "name them to read them: `dtrun metrics RUN --name system/` prints all of them.\n");
    dt_strbuf_add_str(out, "\nAnother metric is better when it is higher if its name contains ");
    for (size_t i = 0; dt_metric_high_words[i] != NULL; i++)
        dt_strbuf_add_fmt(out, "%s`%s`",
                          i == 0                                ? ""
                          : dt_metric_high_words[i + 1] != NULL ? ", "
                                                                : " or ",
                          dt_metric_high_words[i]);
    dt_strbuf_add_str(out, ".\n");
}

void dt_metric_script(dt_strbuf *out)
{
    dt_strbuf_add_str(
        out,
        "// metric_table: the metrics that dtrun records, in the order of a reader's interest.\n"
        "// Generated by dtrun-metric-doc --script from base/metric_kinds.c; a test compares.\n"
        "export const METRICS = [\n");
    for (size_t i = 0; i < COUNT(dt_metric_kinds); i++) {
        const dt_metric_kind *kind = &dt_metric_kinds[i];

        dt_strbuf_add_fmt(
            out,
            "  {name: '%s', title: '%s', chart: '%s', better: '%s', dots: %s, internal: %s},\n",
            kind->name, kind->title, kind->chart, better_words[kind->better],
            kind->source == DT_FROM_EVALUATIONS ? "true" : "false",
            kind->internal ? "true" : "false");
    }
    dt_strbuf_add_str(
        out, "];\n\n// Words in the name of another metric that say that higher is better.\n"
             "export const BETTER_HIGH = [");
    for (size_t i = 0; dt_metric_high_words[i] != NULL; i++)
        dt_strbuf_add_fmt(out, "%s'%s'", i == 0 ? "" : ", ", dt_metric_high_words[i]);
    dt_strbuf_add_str(out, "];\n");
}
