/* contact: probes a node that does not respond.
 *
 * dtrun-reach --probe NODE WORD...   runs the words on the node without stdin and stdout, and at the same time tests
 * whether the machine answers at all: a machine that refuses the login (a withdrawn key, an expired ticket), or whose
 * home directory stalls, is alive. Its exit code is a dt_contact.
 */
#ifndef DT_RUNNER_CONTACT_H
#define DT_RUNNER_CONTACT_H

#include "base/error.h"

typedef enum dt_contact {
    DT_CONTACT_COMMAND = 0,  /* the command ran on the node, with exit code 0 */
    DT_CONTACT_HOST = 10,    /* the machine answers */
    DT_CONTACT_UNKNOWN = 11, /* could not be tried: no name server, bad local configuration */
    DT_CONTACT_NONE = 12     /* nothing answers */
} dt_contact;

/* Probes the node, for nine seconds at most. With a transport that cannot test without signing in, only runs the
 * command. */
dt_contact dt_contact_try(const char *node, const char *const *words);

#endif
