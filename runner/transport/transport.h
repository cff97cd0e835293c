/* transport: how a node is reached: "the argv that gives me stdin and stdout on that node".
 *
 *   local.c   this machine                 ssh.c     the system's ssh, with the user's own setup
 *   slurm.c   srun, into a job's nodes      remote*.c one command there, as a descriptor
 *   quote.c   words through a login shell  ssh_errors.c what ssh complains of, with the remedy
 *   ssh_config.c  what ssh's configuration says of a host: jump hosts, all of it
 *   ssh_socket.c  the socket of the connection that commands to a node share
 *   connection_slots.c  how many connections are being opened at once
 *   renew.c   past a connection that is stuck
 *   contact.c what a node that is silent still proves
 *
 * Adding a transport: a file with one struct, a line in the table of transport.c.
 * Ownership  everything returned lives in the arena that is passed
 * Threads    any
 */
#ifndef DT_RUNNER_TRANSPORT_H
#define DT_RUNNER_TRANSPORT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "runner/transport/contact.h"

/* What a remote shell prints before the command's own first byte, alone on its line: what comes
 * before it is noise of the login shell. */
#define DT_TRANSPORT_MARK "dtrun-begins-here"

/* What the remote shell prints after the command's last byte, with digits that differ for each command, a blank, the
 * exit code and a newline. The end of the output is not waited for: a program that a login shell's files have started in
 * the background may hold it open. */
#define DT_TRANSPORT_END        "\036dtrun-ends-here-"
#define DT_TRANSPORT_END_DIGITS 16

typedef struct dt_transport {
    const char *kind;
    bool (*reaches)(const char *node); /* MUST: whether this transport is for that node */
    /* MUST: the argv, ended by NULL, that runs `words` there with its stdin and stdout; words[0] is
     * a path on the node. */
    dt_status (*command)(const char ***argv, const char *node, const char *const *words,
                         dt_arena *arena, dt_error *err);
    /* MAY: opening a connection takes a slot, DT_TRANSPORT_MARK comes before the command's output,
     * and the exit code 255 is the transport's own. NULL: it is this machine. `complaint` is the
     * command's stderr; records what it means and what helps, returns its status. */
    dt_status (*explain)(const char *node, const char *complaint, dt_error *err);
    /* MAY: the argv, run here, after which new commands to the node do not share the connection
     * that stands; what runs over that one continues. NULL: nothing is shared. */
    dt_status (*renew)(const char ***argv, const char *node, dt_arena *arena, dt_error *err);
    /* MAY: whether this line of stderr is the transport's own, which comes after what the command
     * said; then any exit code before the mark is the transport's too. NULL: none is. */
    bool (*is_transport_line)(const char *line);
    bool (*connection_lost)(
        const char *complaint); /* MAY: not the command failed but what carried it */
    /* MAY: whether the node was taken back from us, and all that ran there ended with that. */
    bool (*is_preempted)(const char *node);
    /* MAY: what a failed command's stderr, or that of `ping` so far, proves. NULL: nothing. */
    dt_contact (*contact)(const char *complaint);
    /* MAY: the argv that asks only whether the machine answers, signing in to nothing. */
    dt_status (*ping)(const char ***argv, const char *node, dt_arena *arena, dt_error *err);
    /* MAY: the path of a socket in an argv of `command` that can be connected to while a connection to the node
     * stands. Then no new connection is opened, and who opened it has been let in. NULL: nothing is shared. */
    const char *(*shared_socket)(const char *const *argv);
    /* MAY: `command` over a connection of its own, which ends with the command. NULL: every one does. */
    dt_status (*command_apart)(const char ***argv, const char *node, const char *const *words,
                               dt_arena *arena, dt_error *err);
    bool ends_children; /* what a command leaves running there is ended with it */
} dt_transport;

/* What dtrun-reach says of a node that was taken back begins so. */
#define DT_TRANSPORT_PREEMPTED "taken back: "

extern const dt_transport dt_transport_local, dt_transport_slurm, dt_transport_ssh;

/* DT_ERR_UNSUPPORTED, naming the node, where none reaches it. */
dt_status dt_transport_find(const dt_transport **out, const char *node, dt_error *err);

#endif
