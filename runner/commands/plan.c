/* dtrun plan: predicts memory, messages and speed of a recipe on GPUs that need not exist. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/data/data.h"
#include "recipes/architecture/architecture.h"
#include "recipes/fields/nodes.h"
#include "runner/cli/command.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/view/recipe/recipe_report.h"

enum { NODES_MOST = 8192, GPUS_MOST = 16, DEFAULT_GPUS = 8 };

/* "1,2,128" */
static dt_status parse_nodes(dt_planned *out, const char *text, dt_error *err)
{
    const char *at = text;
    char *end;

    do {
        long long nodes;

        errno = 0;
        nodes = strtoll(at, &end, 10);
        if (errno != 0 || end == at || (*end != ',' && *end != '\0') || nodes < 1 ||
            nodes > NODES_MOST)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "--nodes is '%s': expected integers from 1 to %d with commas "
                           "between them, for example 1,2,128",
                           text, NODES_MOST);
        if (out->sizes_count == DT_PLANNED_MOST)
            return DT_FAIL(err, DT_ERR_USAGE, "--nodes has more than %d numbers", DT_PLANNED_MOST);
        out->sizes[out->sizes_count++].nodes = nodes;
        at = end + 1;
    } while (*end == ',');
    return DT_OK;
}

/* Counts the nodes of the recipe ("slurm:4" is four) and the GPUs of each. */
static dt_status read_nodes(dt_planned *out, bool gpus_given, dt_arena *arena, dt_error *err)
{
    const dt_recipe *recipe = &out->recipe;
    int64_t *gpus = &out->machine.fabric.node_gpus, nodes = 0;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < recipe->nodes.count; i++) {
        int64_t each = recipe->gpus > 0 ? recipe->gpus : DEFAULT_GPUS, many;
        dt_node_spec spec;

        DT_TRY(dt_node_spec_parse(&spec, recipe->nodes.items[i], arena, err));
        if (spec.gpus > 0)
            each = spec.gpus;
        if (!gpus_given && i > 0 && each != *gpus)
            DT_THROW(err, DT_ERR_USAGE,
                     "the recipe's nodes have %lld and %lld GPUs; a plan needs equal nodes: "
                     "use --gpus-per-node",
                     (long long)*gpus, (long long)each);
        if (!gpus_given)
            *gpus = each;
        many = dt_node_slurm_count(spec.destination);
        nodes += many > 0 ? many : 1;
    }
    if (out->sizes_count == 0)
        out->sizes[out->sizes_count++].nodes = nodes;
out:
    return st;
}

/* Fills in the machine from the tables; options override them. */
static void read_machine(dt_planned *out, const dt_arguments *args)
{
    const dt_value *peak = dt_arguments_get(args, "peak");
    const dt_value *within = dt_arguments_get(args, "node-gbs");
    const dt_value *between = dt_arguments_get(args, "network-gbs");
    dt_machine *machine = &out->machine;
    double gpus;

    out->gpu = &dt_gpu_specs[dt_arguments_get(args, "card")->choice];
    out->network = &dt_networks[dt_arguments_get(args, "network")->choice];
    machine->fabric.nvlink = out->gpu->nvlink;
    out->given_node = within->given;
    machine->fabric.node_gbs = within->given ? within->number : out->gpu->node_gbs;
    out->given_network = between->given;
    gpus = out->network->per_gpu ? (double)machine->fabric.node_gpus : 1;
    machine->fabric.network_gbs = between->given ? between->number : out->network->nic_gbs * gpus;
    out->given_peak = peak->given;
    machine->tflops = peak->given                                       ? peak->number
                      : out->recipe.precision.kind == DT_PRECISION_FP32 ? out->gpu->single_tflops
                                                                        : out->gpu->half_tflops;
    machine->matrix_tflops = peak->given ? peak->number
                             : out->recipe.precision.kind == DT_PRECISION_BF16
                                 ? out->gpu->half_tflops
                                 : out->gpu->single_tflops;
    machine->efficiency = dt_arguments_get(args, "efficiency")->number / 100;
    machine->memory_gbs = out->gpu->memory_gbs;
    machine->memory_bytes = out->gpu->memory_gb * 1e9;
}

/* Finds the size of the vocabulary: model.vocab of the recipe, else from the data. */
static dt_status find_vocab(dt_planned *out, const dt_recipe_source *source, dt_arena *arena,
                            dt_error *err)
{
    dt_dataset_facts data;
    dt_status st = DT_OK;

    out->vocab = out->recipe.model.vocab;
    if (out->vocab > 0 || dt_architecture_find(out->recipe.model.kind)->reads_rows)
        return DT_OK;
    st = dt_dataset_check(&data, &out->recipe, NULL, err);
    out->vocab = data.vocab;
    if (st != DT_OK)
        dt_error_prefix(err, "cannot find the size of the vocabulary; set model.vocab (--set "
                             "model.vocab=50257)");
    if (st == DT_ERR_RECIPE)
        dt_recipe_locate_data(err, source, arena);
    return st;
}

static dt_status plan(dt_call *call, dt_error *err)
{
    const dt_value *nodes = dt_arguments_get(call->args, "nodes");
    const dt_value *gpus = dt_arguments_get(call->args, "gpus-per-node");
    dt_recipe_source source;
    dt_planned planned = {0};
    dt_status st = DT_OK;

    DT_TRY(dt_read_training_recipe(&planned.recipe, &source, call->args->operands[0], call, err));
    if (nodes->given)
        DT_TRY(parse_nodes(&planned, nodes->text, err));
    planned.machine.fabric.node_gpus = gpus->integer;
    DT_TRY(read_nodes(&planned, gpus->given, call->arena, err));
    read_machine(&planned, call->args);
    DT_TRY(find_vocab(&planned, &source, call->arena, err));
    for (int i = 0; i < planned.sizes_count; i++) {
        dt_planned_size *size = &planned.sizes[i];
        dt_machine machine = planned.machine;

        machine.fabric.nodes = size->nodes;
        DT_TRY(dt_predict(&size->prediction, &planned.recipe, planned.vocab, &machine, call->arena,
                          err));
    }
    DT_TRY(dt_predict_overlap_end(&planned.overlap_end, &planned.recipe, planned.vocab,
                                  &planned.machine, call->arena, err));
    DT_TRY(call->json ? dt_plan_report_json(&planned, err)
                      : dt_plan_report_text(&planned, call->arena, err));
out:
    return st;
}

static const dt_option options[] = {
    {.name = "nodes",
     .letter = 'n',
     .kind = DT_OPTION_TEXT,
     .value = "N[,N...]",
     .help = "numbers of nodes, one row of the table each (default: as in the recipe)"},
    {.name = "gpus-per-node",
     .letter = 'g',
     .kind = DT_OPTION_INT,
     .value = "G",
     .low = 1,
     .high = GPUS_MOST,
     .help = "GPUs of a node (default: the recipe's 'gpus', else 8)"},
    {.name = "card",
     .kind = DT_OPTION_CHOICE,
     .value = "CARD",
     .choices = dt_gpu_spec_names,
     .fallback = "h100",
     .help = "GPU whose matrix rate, memory and links are used"},
    {.name = "network",
     .kind = DT_OPTION_CHOICE,
     .value = "NETWORK",
     .choices = dt_network_names,
     .fallback = "ndr",
     .help =
         "network between nodes (ndr and hdr have one adapter for each GPU, Ethernet one a node)"},
    {.name = "efficiency",
     .kind = DT_OPTION_NUMBER,
     .value = "PERCENT",
     .low = 1,
     .high = 100,
     .fallback = "50",
     .help = "share of the matrix rate that passes reach on one GPU"},
    {.name = "peak",
     .kind = DT_OPTION_NUMBER,
     .value = "TFLOPS",
     .low = 0.001,
     .high = 1e6,
     .help = "matrix rate of a GPU, instead of the data sheet's"},
    {.name = "node-gbs",
     .kind = DT_OPTION_NUMBER,
     .value = "GBS",
     .low = 0.001,
     .high = 1e6,
     .help = "bus bandwidth of collectives within a node, GB/s"},
    {.name = "network-gbs",
     .kind = DT_OPTION_NUMBER,
     .value = "GBS",
     .low = 0.001,
     .high = 1e6,
     .help = "bandwidth of all network adapters of a node together, GB/s"},
    DT_RECIPE_OPTIONS("override a recipe value, as in launch"),
    {0},
};

const dt_command dt_command_plan = {
    .name = "plan",
    .summary = "predict memory, messages and speed of a recipe on GPUs",
    .operands = "RECIPE",
    .takes = DT_OPERAND_FILE,
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "Measures nothing and needs no GPU. The time of a pass is the model's FLOPs divided by\n"
        "the GPU's rate times the efficiency; the time of messages follows NCCL's own model for\n"
        "these links, overlapped with the passes as the strategy launches them. For your own\n"
        "cluster, give measured values: --efficiency from a run on one GPU (its MFU), --node-gbs\n"
        "and --network-gbs from nccl-tests (busbw). docs/scaling.md has worked examples and\n"
        "published results.\n",
    .run = plan,
};
