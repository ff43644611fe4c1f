/* feed: the verdict of an incremental parser. Where the network cuts the stream must not change it. */
#ifndef SILICA_HTTP_FEED_H
#define SILICA_HTTP_FEED_H

enum feed {
    FEED_MORE, /* all input was taken, nothing is complete yet */
    FEED_DONE, /* one unit is complete; input behind it was left */
    FEED_BAD,  /* the stream is broken and stays so */
};

#endif
