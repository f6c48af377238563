// Variables of every data section, and functions in and out of the program's own section.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 limit = 100;
__u64 seen = 5;
__u64 last[4];
static volatile __u32 verdicts[3] = { XDP_DROP, XDP_PASS, XDP_TX };

static __attribute__((noinline)) __u32 length(struct xdp_md *ctx)
{
	return ctx->data_end - ctx->data;
}

__attribute__((noinline)) int classify(struct xdp_md *ctx)
{
	__u32 bytes = length(ctx);

	last[1] = bytes;
	return bytes > limit ? 2 : bytes == limit;
}

SEC("xdp/first")
int first(struct xdp_md *ctx)
{
	__sync_fetch_and_add(&seen, 1);
	return verdicts[(__u32)classify(ctx) % 3];
}

SEC("xdp/second")
int second(struct xdp_md *ctx)
{
	last[2] += seen;
	return length(ctx) & 1 ? XDP_ABORTED : XDP_PASS;
}

SEC("xdp/second")
int third(struct xdp_md *ctx)
{
	return second(ctx) + 1;
}
