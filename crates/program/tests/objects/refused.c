// One program for each thing that can't be loaded, and one that can.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 4);
	__uint(key_size, 0);
	__type(value, __u32);
} waiting SEC(".maps");

struct flow {
	int a, b;
} __attribute__((preserve_access_index));

extern int bpf_xdp_metadata_rx_hash(const struct xdp_md *ctx, __u32 *hash) __ksym;
extern __u32 HZ __ksym;

SEC("xdp")
int works(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("xdp")
int ring(struct xdp_md *ctx)
{
	void *record = bpf_ringbuf_reserve(&events, 8, 0);

	if (record)
		bpf_ringbuf_discard(record, 0);
	return XDP_PASS;
}

SEC("xdp")
int queue(struct xdp_md *ctx)
{
	bpf_map_push_elem(&waiting, ctx, 0);
	return XDP_PASS;
}

SEC("xdp")
int relocated(struct xdp_md *ctx)
{
	struct flow *flow = (void *)(long)ctx->data;

	if ((void *)(flow + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	return flow->b;
}

SEC("xdp")
int kernel(struct xdp_md *ctx)
{
	__u32 hash = 0;

	return bpf_xdp_metadata_rx_hash(ctx, &hash) + hash;
}

SEC("xdp")
int symbol(struct xdp_md *ctx)
{
	return HZ;
}

extern int elsewhere(__u32 number);
extern __u32 shared;
extern unsigned int CONFIG_HZ __kconfig;

SEC("xdp")
int function(struct xdp_md *ctx)
{
	return elsewhere(ctx->rx_queue_index);
}

SEC("xdp")
int variable(struct xdp_md *ctx)
{
	return shared;
}

SEC("xdp")
int configured(struct xdp_md *ctx)
{
	return CONFIG_HZ;
}

SEC("xdp/devmap")
int leaving(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("xdp.frags/cpumap")
int on_processor(struct xdp_md *ctx)
{
	return XDP_PASS;
}

SEC("tc")
int other(struct xdp_md *ctx)
{
	return 0;
}
