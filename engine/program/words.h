/* words: makes the words of the user's program for one rank.
 *
 * Replaced  {nnodes}, {node_rank}, {nproc}, {world_size}, {rank}, {local_rank}, {master_addr}, {master_port}, {run}, and
 *           {args.NAME} by the value of the recipe's `args`
 * Resume    an attempt after the first adds the recipe's `resume`, with {checkpoint}; not before the first checkpoint,
 *           if the recipe names checkpoints. For a shell it is appended as text, with the path as a variable
 * Activate  with the recipe's `activate` the first words are a login shell that runs it and then becomes the program
 */
#ifndef DT_ENGINE_PROGRAM_WORDS_H
#define DT_ENGINE_PROGRAM_WORDS_H

#include "recipes/plan/plan.h"

typedef struct dt_words_facts {
    int64_t rank;
    int64_t local_ranks;        /* ranks of the plan on the same node */
    const char *master_address; /* of the node of rank 0 */
    int64_t master_port;
} dt_words_facts;

/* Returns the words and NULL, in the arena; the first is the program, or /bin/sh. */
const char **dt_program_words(const dt_plan *plan, const dt_words_facts *facts, dt_arena *arena);
/* Returns the text with {run} replaced. */
const char *dt_program_replace_run(const dt_plan *plan, const char *text, dt_arena *arena);

#endif
