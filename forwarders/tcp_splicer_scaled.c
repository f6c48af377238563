// SPDX-License-Identifier: Apache-2.0 OR MIT
// TCP splicer for two connections whose windows are scaled differently: tcp_splicer.c, with the window shifted as well. It is a program of its
// own, because what the paper allows for a packet has room for tcp_splicer and the three that go with it, and for no byte of state more.
//
// Not one of the paper's.
#define SCALED
#define tcp_splicer tcp_splicer_scaled
#include "tcp_splicer.c"
