/* protocol: what agent and supervisor must agree on; the words are in runner/PROTOCOL.md. */
#ifndef DT_RUNNER_PROTOCOL_H
#define DT_RUNNER_PROTOCOL_H

/* A build speaks all versions from the oldest to its own. `attach` names the supervisor's, and `hello` the
 * lower of the two, by which they continue; who is asked for less than its oldest refuses, and
 * names that. A change that the other side would misread is a new version; keys and events may be
 * added without one. */
#define DT_PROTOCOL_VERSION 1
#define DT_PROTOCOL_OLDEST  1
/* Of the journal's lines; the first one that an agent writes says it. Later ones are not read. */
#define DT_PROTOCOL_JOURNAL_VERSION 1
/* In front of what `dtrun-agent connect` says on its stderr where a newer dtrun must be used. */
#define DT_PROTOCOL_NEWER "of a newer dtrun: "
/* All that `dtrun-agent stop` says on its stdout, where the ranks are gone and the agent is not. */
#define DT_PROTOCOL_AGENT_STAYS "agent stays\n"

#define DT_PROTOCOL_MAX_LINE_BYTES ((size_t)1 << 20)
/* A command: `start` holds the plan, of at most 16 MiB, which may name ten thousand files. */
#define DT_PROTOCOL_MAX_COMMAND_BYTES ((size_t)17 << 20)

#define DT_PROTOCOL_MAX_RANKS 65536

#endif
