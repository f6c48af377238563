// Refused: a record is left behind where a packet is too short.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

SEC("xdp")
int forgetful(struct xdp_md *ctx)
{
	struct ethhdr *ethernet = (void *)(long)ctx->data;
	__u32 *record = bpf_ringbuf_reserve(&records, sizeof(*record), 0);

	if (!record)
		return XDP_PASS;
	if ((void *)(ethernet + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	*record = ethernet->h_proto;
	bpf_ringbuf_submit(record, 0);
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
