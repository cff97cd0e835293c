/* contact: what can be proved of a node that is silent, by trying to reach it.
 *
 * dtrun-reach --probe NODE WORD...   runs the words there with nothing to read and nobody to hear
 * them, and beside it asks whether the machine answers at all: one that lets nobody in (a key that
 * was withdrawn, a ticket that expired), or whose home stalls, lives. Its exit code is one of
 * these.
 */
#ifndef DT_RUNNER_CONTACT_H
#define DT_RUNNER_CONTACT_H

#include "base/error.h"

typedef enum dt_contact {
    DT_CONTACT_COMMAND = 0,  /* the command ran there, and ended well */
    DT_CONTACT_HOST = 10,    /* the machine answers */
    DT_CONTACT_UNKNOWN = 11, /* it could not be tried: no name server, our own configuration */
    DT_CONTACT_NONE = 12     /* nothing answers */
} dt_contact;

/* Takes nine seconds at most; of a transport without a sign-in of its own: only the command. */
dt_contact dt_contact_try(const char *node, const char *const *words);

#endif
