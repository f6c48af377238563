// What -mcpu=v4 adds: signed division, sign extension, byte swaps, and atomics that fetch.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

__s64 a = -13, b = 3, c = 2;
__s16 small = -2;
__u64 word = 0x0102030405060708;
__u32 half = 5;
__s64 results[8];

SEC("xdp")
int modern(struct xdp_md *ctx)
{
	results[0] = a / b;
	results[1] = a % c;
	results[2] = small;
	results[3] = __builtin_bswap64(word);
	results[4] = (__s8)ctx->rx_queue_index;
	results[5] = __sync_fetch_and_add(&half, 2);
	results[6] = __sync_val_compare_and_swap(&word, 0x0102030405060708, 7);
	results[7] = __sync_lock_test_and_set(&half, 1);
	return XDP_PASS;
}
