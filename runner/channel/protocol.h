/* protocol: what agent and supervisor must agree on; the words are in runner/PROTOCOL.md. */
#ifndef DT_RUNNER_PROTOCOL_H
#define DT_RUNNER_PROTOCOL_H

#define DT_PROTOCOL_VERSION        1
#define DT_PROTOCOL_MAX_LINE_BYTES ((size_t)1 << 20)
/* A command: `start` holds the plan, of at most 16 MiB, which may name ten thousand files. */
#define DT_PROTOCOL_MAX_COMMAND_BYTES ((size_t)17 << 20)

#define DT_PROTOCOL_ALIVE_SECONDS 2.0 /* an agent says so this often */

#define DT_PROTOCOL_MAX_RANKS 65536

#endif
