/* transport: returns the argv that runs a command on a node, with stdin and stdout connected; probes a node that does
 * not respond (contact.c); quotes a command for any login shell.
 *
 * remote.h runs one command on a node as a descriptor. Adding a transport: a file with one struct, as ssh.c, or a folder
 * as slurm/, and a line in the table of transport.c.
 * Ownership  everything returned lives in the caller's arena
 * Threads    any
 */
#ifndef DT_RUNNER_TRANSPORT_TRANSPORT_H
#define DT_RUNNER_TRANSPORT_TRANSPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/strbuf.h"

/* contact: probes a node that does not respond.
 *
 * dtrun-reach --probe NODE WORD...   runs the words on the node without stdin and stdout, and at the same time tests
 * whether the machine answers at all: a machine that refuses the login (a withdrawn key, an expired ticket), or whose
 * home directory stalls, is alive. Its exit code is a dt_contact.
 */

typedef enum dt_contact {
    DT_CONTACT_COMMAND = 0,  /* the command ran on the node, with exit code 0 */
    DT_CONTACT_HOST = 10,    /* the machine answers */
    DT_CONTACT_UNKNOWN = 11, /* could not be tried: no name server, bad local configuration */
    DT_CONTACT_NONE = 12     /* nothing answers */
} dt_contact;

/* Probes the node, for nine seconds at most. With a transport that cannot test without signing in, only runs the
 * command. */
dt_contact dt_contact_try(const char *node, const char *const *words);

/* quote: quotes a command for any login shell on the node.
 *
 * sshd passes one string to the login shell (bash, dash, zsh, fish, csh, tcsh, ...), and their quoting differs: fish
 * reads backslashes inside single quotes, csh reads '!' and refuses newlines there. So the login shell gets one
 * word in single quotes without these characters, which runs in /bin/sh: a printf that writes the real script,
 * with every special byte as \ooo, and an eval of it.
 *
 *   exec /bin/sh -c 'eval "$(printf "exec /opt/x \047two words\047")"'
 */

/* Appends `word` for POSIX sh: unquoted if that is safe, else in single quotes. */
void dt_quote_word(dt_strbuf *out, const char *word);

/* Appends `script` (POSIX sh, not ending in a newline) as one string for any login shell. */
void dt_quote_script(dt_strbuf *out, const char *script);

/* --- the struct of a transport */

/* The remote shell prints this line before the command's first byte; output before it is noise of the login shell. */
#define DT_TRANSPORT_MARK "dtrun-begins-here"

/* The remote shell prints this after the command's last byte, with digits that differ for each command, a blank, the
 * exit code and a newline. dtrun does not wait for end of file: a background program that the login shell's files
 * started can hold stdout open. */
#define DT_TRANSPORT_END        "\036dtrun-ends-here-"
#define DT_TRANSPORT_END_DIGITS 16

/* What a run needs of a transport that lends it nodes. */
typedef struct dt_place_wish {
    const char *name; /* of the run's recipe */
    int64_t nodes, tasks_per_node, cpus_per_task, gpus_per_node;
    const char *const
        *options; /* [option_count] the recipe's, for this transport; dtrun's own take precedence */
    int64_t option_count;
} dt_place_wish;

/* The nodes that stand for the destination "slurm" or "slurm:4" of a recipe. */
typedef struct dt_lent_nodes {
    int64_t count;
    const char **names; /* [count] machines, or names that `place` makes machines of */
    int64_t *cores;     /* [count] for the ranks there */
    int64_t *ranks;     /* [count] that the lender was asked for; 0: not given */
    int64_t gpus;       /* of each node; -1: not given */
} dt_lent_nodes;

typedef struct dt_place_request {
    const char *node, *run;
    const char *run_folder; /* runs/ID, where the transport may keep what it was lent */
    const dt_place_wish *wish;
    const atomic_bool *cancelled; /* set from another thread to make the call fail soon */
    void (*progress)(void *context, const char *text); /* from the calling thread; may be NULL */
    void *context;
} dt_place_request;

typedef struct dt_start_request {
    const char *node;
    const char *agent, *folder; /* on the node: dtrun-agent, and its DIR */
    const char *here;           /* a folder on this machine, for a log */
    const atomic_bool *cancelled;
} dt_start_request;

typedef struct dt_transport {
    const char *kind;
    bool (*reaches)(const char *node); /* MUST: whether this transport is for that node */
    /* MUST: returns the argv, NULL-terminated, that runs `words` on the node with this stdin and stdout; words[0] is
     * a path on the node. */
    dt_status (*command)(const char ***argv, const char *node, const char *const *words,
                         dt_arena *arena, dt_error *err);
    /* MAY: records an error with the meaning and remedy of `complaint`, the command's stderr, and returns its status. A
     * transport with this function takes a slot to open a connection, prints DT_TRANSPORT_MARK before the command's
     * output, and has 255 as its own exit code. NULL: this machine. */
    dt_status (*explain)(const char *node, const char *complaint, dt_error *err);
    /* MAY: the argv, run on this machine, after which new commands do not share the existing connection; commands
     * that run over it continue. NULL: connections are not shared. */
    dt_status (*renew)(const char ***argv, const char *node, dt_arena *arena, dt_error *err);
    /* MAY: returns true for a line of stderr from the transport itself, which follows the command's own output; then
     * any exit code before the mark is also the transport's. NULL: no line is. */
    bool (*is_transport_line)(const char *line);
    /* MAY: returns true if the connection failed, not the command. */
    bool (*connection_lost)(const char *complaint);
    /* MAY: returns true if the server closed the connection at once, without a reason: it has too many connections
     * that are not signed in (MaxStartups), perhaps of other users. */
    bool (*is_refused)(const char *complaint);
    /* MAY: returns true if the node was preempted, which ended all that ran there. */
    bool (*is_preempted)(const char *node);
    /* MAY: returns what the stderr of a failed command, or of `ping` so far, proves about the node. NULL: nothing. */
    dt_contact (*contact)(const char *complaint);
    /* MAY: the argv that only tests whether the machine answers, without signing in. */
    dt_status (*ping)(const char ***argv, const char *node, dt_arena *arena, dt_error *err);
    /* MAY: returns the path, in an argv of `command`, of the socket that accepts connections while a shared connection
     * to the node is open and signed in. NULL: connections are not shared. */
    const char *(*shared_socket)(const char *const *argv);
    /* MAY: as `command`, over a separate connection that ends with the command. NULL: `command` always does so. */
    dt_status (*command_apart)(const char ***argv, const char *node, const char *const *words,
                               dt_arena *arena, dt_error *err);
    /* Nodes are lent, with a part of their cores and GPUs, until `remove` or until the lender wants them back; a node that
     * is gone never comes back. */
    bool lent;
    /* MAY: the nodes for the destination KIND:COUNT of a recipe; count 0: for KIND. DT_ERR_RECIPE: it cannot have them.
     * NULL: a destination is a node. */
    dt_status (*expand)(dt_lent_nodes *out, int64_t count, dt_arena *arena, dt_error *err);
    /* MAY: DT_ERR_UNSUPPORTED, with the remedy, if the name stands for a node that is yet to be lent. NULL: no name
     * does. */
    dt_status (*check_placed)(const char *node, dt_error *err);
    /* MAY: tests whether nodes would be lent; asks for none. NULL: they are not lent. */
    dt_status (*try_place)(const dt_place_wish *wish, dt_error *err);
    /* MAY: makes a machine of a name that stands for one to be lent, and waits until it can be used; another name stays.
     * Called for all nodes of a run at the same time, before anything else runs there. NULL: every name is a machine. */
    dt_status (*place)(const char **node, const dt_place_request *request, dt_arena *arena,
                       dt_error *err);
    /* MAY: starts the agent so that it outlives the connection, and waits until it answers. NULL: what a command leaves
     * running outlives it, so `dtrun-agent connect` starts the agent. */
    dt_status (*start)(const dt_start_request *request, dt_arena *arena, dt_error *err);
    /* MAY: at the end of the run in this folder, gives back what `place` was lent for it, if anything. good: the run
     * finished. Failures are logged. */
    void (*remove)(const char *run_folder, bool good);
    /* Something in the process group of the transport's program ends the command on the node if that program is killed:
     * only the program is killed. */
    bool spares_group;
} dt_transport;

/* Prefix of dtrun-reach's message for a preempted node. */
#define DT_TRANSPORT_PREEMPTED "taken back: "

extern const dt_transport dt_transport_local, dt_transport_slurm, dt_transport_ssh;

/* Finds the transport of a node. DT_ERR_UNSUPPORTED, naming the node, if there is none. */
dt_status dt_transport_find(const dt_transport **out, const char *node, dt_error *err);

/* Returns the transport with `expand` for a recipe's destination KIND:COUNT, or KIND with *count 0; NULL: the destination
 * is a node. */
const dt_transport *dt_transport_lender(int64_t *count, const char *destination);

/* Returns `lent` of the node's transport. */
bool dt_transport_is_lent(const char *node);

/* Calls `remove` of every transport. */
void dt_transports_remove(const char *run_folder, bool good);

#endif
