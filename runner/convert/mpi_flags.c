/* mpi_flags: lists the flags of mpirun and mpiexec of Open MPI, MPICH (hydra) and Intel MPI, whose names have one or two
 * dashes. tests/peers/launcher_flags.py compares the table with the programs. */
#include "runner/convert/launcher.h"

#define CORES  "dtrun divides the cores of a node among its ranks ('threads')"
#define FINDS  "dtrun finds its own connections"
#define LOGS   "'dtrun logs' has the output of each rank"
#define ORDER  "the ranks of a node have consecutive numbers"
#define STARTS "dtrun starts the nodes itself, over ssh or with Slurm"

#define LEFT(name, also, takes, why)               \
    {                                              \
        name, also, takes, DT_FLAG_LEFT, why, NULL \
    }
#define REFUSED(name, also, takes, why)               \
    {                                                 \
        name, also, takes, DT_FLAG_REFUSED, why, NULL \
    }

/* one flag per line */
/* clang-format off */
static const dt_flag mpi[] = {
    {"-np", "-n -c", DT_TAKES_INT, DT_FLAG_PART, "processes, divided among the nodes", NULL},
    {"-npernode", "-N -ppn -perhost", DT_TAKES_INT, DT_FLAG_PART, "processes on each node", NULL},
    {"-H", "-host -hosts", DT_TAKES_TEXT, DT_FLAG_PART, "nodes", NULL},
    {"-hostfile", "-machinefile -f", DT_TAKES_TEXT, DT_FLAG_PART, "nodes: the hosts of the file", NULL},
    {"-x", NULL, DT_TAKES_TEXT, DT_FLAG_EACH, "env", NULL},
    {"-genvlist", "-envlist", DT_TAKES_TEXT, DT_FLAG_EACH, "env", NULL},
    {"-genv", "-env", DT_TAKES_PAIR, DT_FLAG_EACH, "env", NULL},
    {"-wdir", "-wd", DT_TAKES_TEXT, DT_FLAG_FIELD, "workdir.folder", NULL},
    LEFT("-mca", "-gmca -pmca -omca -prtemca", DT_TAKES_PAIR, FINDS),
    LEFT("-genvall", "-envall", DT_TAKES_NOTHING, "ranks get the environment of their node"),
    LEFT("-bind-to", "-rank-by -membind -cpu-set -cpu-list", DT_TAKES_TEXT, CORES),
    LEFT("-bind-to-core", "-bind-to-socket -bind-to-none -use-hwthread-cpus -report-bindings -report-child-jobs-separately", DT_TAKES_NOTHING, CORES),
    LEFT("-cpus-per-proc", "-cpus-per-rank", DT_TAKES_INT, CORES),
    LEFT("-map-by", NULL, DT_TAKES_TEXT, ORDER),
    LEFT("-byslot", "-bycore", DT_TAKES_NOTHING, ORDER),
    REFUSED("-bynode", NULL, DT_TAKES_NOTHING, "it numbers the ranks across the nodes; those of a node have consecutive numbers here"),
    LEFT("-allow-run-as-root", "-noprefix -novm -leave-session-attached -do-not-resolve", DT_TAKES_NOTHING, "dtrun does not need it"),
    LEFT("-oversubscribe", "-nooversubscribe -use-regexp -enable-recovery -continuous", DT_TAKES_NOTHING, "'processes' can exceed the number of cores"),
    LEFT("-tag-output", "-timestamp-output -xml -verbose -v -q -quiet -display-map -display-allocation -display-topo -display-devel-map -display-devel-allocation -display-diffable-map -disable-recovery -d -debug-daemons -show-progress -print-all-exitcodes -prepend-rank -l", DT_TAKES_NOTHING, LOGS),
    LEFT("-output-filename", "-outfile-pattern -errfile-pattern -prepend-pattern -output -stdin -xml-file -output-proctable -report-events", DT_TAKES_TEXT, LOGS),
    LEFT("-prefix", "-launch-agent -plm -launcher -launcher-exec -rmk -bootstrap -bootstrap-exec -tmpdir -personality -tune -am -ompi-server", DT_TAKES_TEXT, STARTS),
    LEFT("-iface", "-topolib -demux -nameserver -localhost -order-nodes -branch-count -pmi-port", DT_TAKES_TEXT, FINDS),
    LEFT("-disable-auto-cleanup", "-disable-hostname-propagation -skip-launch-node -enable-x -disable-x -profile", DT_TAKES_NOTHING, "dtrun does not need it"),
    LEFT("-report-state-on-timeout", "-get-stack-traces", DT_TAKES_NOTHING, "a failure has its own evidence"),
    REFUSED("-timeout", "-max-time", DT_TAKES_TEXT, "'time_limit' of the recipe limits the time: remove the flag"),
    REFUSED("-max-restarts", "-usize -gpus-per-proc -npersocket -ppr -slot-list -rankfile -rf -max-vm-size", DT_TAKES_TEXT, "a recipe cannot express it: remove the flag"),
    REFUSED("-pernode", "-genvnone -envnone -nolocal", DT_TAKES_NOTHING, "a recipe cannot express it: give -np and the processes of a node"),
    REFUSED("-default-hostfile", "-dvm -hnp -xterm", DT_TAKES_TEXT, "a recipe cannot express it: remove the flag"),
    REFUSED("-do-not-launch", "-set-cwd-to-session-dir -terminate", DT_TAKES_NOTHING, "a recipe cannot express it: remove the flag"),
    REFUSED("-app", "-configfile", DT_TAKES_TEXT, "several programs in one run are not supported"),
    REFUSED("-path", "-preload-files -s -preload-binary", DT_TAKES_TEXT, "'workdir' brings files to the nodes: give the path of the program"),
    REFUSED("-help", "-h -V -version -info", DT_TAKES_NOTHING, "it starts no training"),
};
/* clang-format on */

const dt_flag_table dt_launcher_mpi_flags = {.program = "mpirun",
                                             .flags = mpi,
                                             .count = sizeof(mpi) / sizeof(mpi[0]),
                                             .strict = true,
                                             .one_dash = true,
                                             .stops_at_operand = true};
