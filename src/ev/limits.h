/* Numbers of the event loop, with their reasons. */
#ifndef SILICA_EV_LIMITS_H
#define SILICA_EV_LIMITS_H

/* Then the callback's name is logged: something blocked the loop */
#define EV_SLOW_CALLBACK_MS 50
/* Taken from the kernel at once; the rest comes in the next turn */
#define EV_EVENTS_PER_TURN 256
/* Objects on their way out that the first allocation holds; it doubles, and stays */
#define EV_GRAVES_FIRST 8
#define EV_GRAVES_KEPT  4096 /* but for a list longer than this, from an end of very many at once */
/* Blocks that are kept for the next object (ev_block_new): sizes, and of each as many as end in a few turns of the loop. None
 * under the address sanitizer, which could not see who uses a block that is somebody else's by then */
#define EV_BLOCK_SIZES 4
#ifdef __SANITIZE_ADDRESS__
#define EV_BLOCKS_KEPT 0
#else
#define EV_BLOCKS_KEPT 128
#endif
/* Of a text that stays for the next (ev_text_take) */
#if EV_BLOCKS_KEPT
#define EV_TEXT_KEPT_BYTES (8 * 1024)
#else
#define EV_TEXT_KEPT_BYTES 0
#endif
/* One read buffer for the whole loop: idle connections own none */
#define EV_SCRATCH_BYTES (64 * 1024)
/* File work and spawning are shallow; the default 8 MiB is waste */
#define EV_WORKER_STACK_BYTES (128 * 1024)
/* A thread without work ends: an idle server is one thread */
#define EV_WORKER_IDLE_MS 2000

/* Then the sockets have their turn: whoever hears of an end may answer a client and start the next child, which may
 * end before the round is over */
#define EV_REAPS_PER_TURN 4

#endif
