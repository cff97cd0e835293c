/* launcher_flags: lists the flags of torchrun (formerly torch.distributed.launch), mpirun and deepspeed. */
#include "runner/convert/launcher.h"

#include "base/banned.h"

#define FINDS "dtrun finds ports and addresses itself"

/* one flag per line */
/* clang-format off */
static const dt_flag torch[] = {
    {"--nnodes", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "nodes, and nodes_min of MIN:MAX", NULL},
    {"--nproc_per_node", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "gpus", NULL},
    {"--master_addr", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "the first of nodes", NULL},
    {"--node_rank", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "one launch starts all nodes, numbered in the order of 'nodes'", "0"},
    {"--master_port", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--standalone", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: one node is the default", NULL},
    {"--rdzv_backend", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--rdzv_endpoint", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--rdzv_id", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "every run has an id of its own", NULL},
    {"--rdzv_conf", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--max_restarts", NULL, DT_TAKES_INT, DT_FLAG_FIELD, "failure.max_restarts", NULL},
    {"--monitor_interval", NULL, DT_TAKES_NUMBER, DT_FLAG_LEFT, "dtrun notices at once when a rank ends", NULL},
    {"--start_method", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "ranks are programs of their own", NULL},
    {"--role", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "all ranks have the same role", NULL},
    {"--log_dir", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "logs are in the run's folder: 'dtrun logs'", NULL},
    {"--redirects", "-r", DT_TAKES_TEXT, DT_FLAG_LEFT, "logs are in the run's folder: 'dtrun logs'", NULL},
    {"--tee", "-t", DT_TAKES_TEXT, DT_FLAG_LEFT, "'dtrun logs -f' follows what ranks print", NULL},
    {"--local_addr", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--use_env", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "ranks get their number from their agent", NULL},
    {"--module", "-m", DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: the program is a Python module", NULL},
    {"--no_python", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: the program is not a Python script", NULL},
};

static const dt_flag mpi[] = {
    {"-np", "-n", DT_TAKES_INT, DT_FLAG_PART, "gpus, divided among the nodes", NULL},
    {"--np", "-c", DT_TAKES_INT, DT_FLAG_PART, "gpus, divided among the nodes", NULL},
    {"-N", "-npernode", DT_TAKES_INT, DT_FLAG_PART, "gpus", NULL},
    {"-ppn", "-perhost", DT_TAKES_INT, DT_FLAG_PART, "gpus", NULL},
    {"-H", "--host", DT_TAKES_TEXT, DT_FLAG_PART, "nodes", NULL},
    {"-host", "-hosts", DT_TAKES_TEXT, DT_FLAG_PART, "nodes", NULL},
    {"--hostfile", "-hostfile", DT_TAKES_TEXT, DT_FLAG_FIELD, "hostfile", NULL},
    {"--machinefile", "-f", DT_TAKES_TEXT, DT_FLAG_FIELD, "hostfile", NULL},
    {"-x", "-genvlist", DT_TAKES_TEXT, DT_FLAG_LEFT, "ranks get the environment of their node; a recipe with a 'command' sets variables in 'env'", NULL},
    {"--bind-to", "-bind-to", DT_TAKES_TEXT, DT_FLAG_LEFT, "dtrun divides the cores of a node among its ranks ('threads')", NULL},
    {"--map-by", "-map-by", DT_TAKES_TEXT, DT_FLAG_LEFT, "the ranks of a node have consecutive numbers", NULL},
    {"--allow-run-as-root", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "dtrun does not check for root", NULL},
    {"--oversubscribe", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "'ranks' can exceed the number of cores", NULL},
};

static const dt_flag deepspeed[] = {
    {"--num_nodes", NULL, DT_TAKES_INT, DT_FLAG_PART, "nodes", NULL},
    {"--num_gpus", NULL, DT_TAKES_INT, DT_FLAG_PART, "gpus", NULL},
    {"--hostfile", "-H", DT_TAKES_TEXT, DT_FLAG_FIELD, "hostfile", NULL},
    {"--include", "-i", DT_TAKES_TEXT, DT_FLAG_LEFT, "list the nodes in 'nodes', as in [\"NAME gpus=N\"]", NULL},
    {"--exclude", "-e", DT_TAKES_TEXT, DT_FLAG_LEFT, "list the nodes in 'nodes', as in [\"NAME gpus=N\"]", NULL},
    {"--master_addr", NULL, DT_TAKES_TEXT, DT_FLAG_PART, "the first of nodes", NULL},
    {"--master_port", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, FINDS, NULL},
    {"--node_rank", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "one launch starts all nodes, numbered in the order of 'nodes'", "0"},
    {"--launcher", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "dtrun starts the nodes itself, over ssh or with Slurm", NULL},
    {"--launcher_args", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "dtrun starts the nodes itself, over ssh or with Slurm", NULL},
    {"--ssh_port", "-p", DT_TAKES_TEXT, DT_FLAG_LEFT, "put it into ~/.ssh/config", NULL},
    {"--module", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: the program is a Python module", NULL},
    {"--no_python", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: the program is not a Python script", NULL},
    {"--no_local_rank", NULL, DT_TAKES_NOTHING, DT_FLAG_PART, "nothing: --local_rank is not added", NULL},
    {"--force_multi", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "one node is not special", NULL},
    {"--no_ssh", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "one launch starts all nodes", NULL},
    {"--save_pid", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "'dtrun stop' ends all processes", NULL},
    {"--enable_each_rank_log", NULL, DT_TAKES_TEXT, DT_FLAG_LEFT, "'dtrun logs --rank' has the log of each rank", NULL},
    {"--bind_cores_to_rank", NULL, DT_TAKES_NOTHING, DT_FLAG_LEFT, "dtrun divides the cores of a node among its ranks ('threads')", NULL},
};
/* clang-format on */

const dt_flag_table dt_launcher_torch_flags = {.program = "torchrun",
                                               .flags = torch,
                                               .count = sizeof(torch) / sizeof(torch[0]),
                                               .stops_at_operand = true};
const dt_flag_table dt_launcher_mpi_flags = {.program = "mpirun",
                                             .flags = mpi,
                                             .count = sizeof(mpi) / sizeof(mpi[0]),
                                             .stops_at_operand = true};
const dt_flag_table dt_launcher_deepspeed_flags = {.program = "deepspeed",
                                                   .flags = deepspeed,
                                                   .count =
                                                       sizeof(deepspeed) / sizeof(deepspeed[0]),
                                                   .stops_at_operand = true};
