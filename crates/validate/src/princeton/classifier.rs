//! The paper's classifier as a program: its requirements by the verifier's count, by the paper, and by the
//! router's charge for its own.

use super::verified;
use crate::book::{Book, paper_if};
use longwire_bench::BenchError;
use longwire_program::{Demand, Prices, Program, Resource, assemble};
use longwire_report::Row;

/// "First validates the headers, then hashes the IP and TCP headers separately. The two hashed values are
/// combined to index into a table that contains metadata for the flow: the key, where the forwarder is to
/// run, a reference to the forwarder, and the addresses of the forwarder's state" (section 4.5). Here the
/// table has 32 flows of 20 bytes: source, destination, ports, where and which forwarder, address of its
/// state.
///
/// Returns XDP_ABORTED for an invalid IP header (RFC 1812, section 5.2.2), XDP_PASS for a packet of no flow,
/// and otherwise the table's entry for the forwarder.
const PROGRAM: &str = "
       r6 = r1
       r7 = *(u32 *)(r6 + 0)
       r8 = *(u32 *)(r6 + 4)
       r2 = r7
       r2 += 38
       if r2 > r8 goto none
       r1 = *(u16 *)(r7 + 12)      ; IPv4, without options
       if r1 != 8 goto none
       r1 = *(u8 *)(r7 + 14)
       if r1 != 69 goto none
       r1 = *(u8 *)(r7 + 23)       ; TCP
       if r1 != 6 goto none
       r1 = *(u16 *)(r7 + 20)      ; no later fragment
       if r1 & 65311 goto none
       r1 = *(u16 *)(r7 + 16)      ; total length: not less than the header's, not more than there is
       r1 = be16 r1
       if r1 < 20 goto bad
       r2 = r7
       r2 += r1
       r2 += 14
       if r2 > r8 goto bad
       r1 = *(u16 *)(r7 + 14)      ; checksum
       r2 = *(u32 *)(r7 + 16)
       r1 += r2
       r2 = *(u32 *)(r7 + 20)
       r1 += r2
       r2 = *(u32 *)(r7 + 24)
       r1 += r2
       r2 = *(u32 *)(r7 + 28)
       r1 += r2
       r2 = *(u16 *)(r7 + 32)
       r1 += r2
       r2 = r1
       r2 >>= 32
       w1 = w1
       r1 += r2
       r2 = r1
       r2 >>= 16
       r1 &= 65535
       r1 += r2
       r2 = r1
       r2 >>= 16
       r1 += r2
       r1 &= 65535
       if r1 != 65535 goto bad
       r1 = r7                     ; addresses, then ports
       r1 += 26
       r2 = 8
       r3 = 0
       call lw_hash
       r9 = r0
       r1 = r7
       r1 += 34
       r2 = 4
       r3 = 0
       call lw_hash
       r9 ^= r0
       r9 &= 31
       r9 *= 20
       r1 = 640
       call lw_flow_state
       r0 += r9
       r1 = *(u32 *)(r0 + 0)
       r2 = *(u32 *)(r7 + 26)
       if r1 != r2 goto none
       r1 = *(u32 *)(r0 + 4)
       r2 = *(u32 *)(r7 + 30)
       if r1 != r2 goto none
       r1 = *(u32 *)(r0 + 8)
       r2 = *(u32 *)(r7 + 34)
       if r1 != r2 goto none
       r2 = *(u32 *)(r0 + 16)
       r0 = *(u32 *)(r0 + 12)
       exit
 none: r0 = 2
       exit
 bad:  r0 = 0
       exit";

/// Bytes of its table.
#[cfg(test)]
const TABLE: usize = 640;

fn program() -> Result<Program, BenchError> {
    Ok(Program::new("classifier", assemble(PROGRAM)?, []))
}

pub(super) fn rows(book: &mut Book<'_>) {
    // The paper's words: "56 instructions and accesses 20 bytes of SRAM"; two hashes.
    for (resource, printed) in [
        (Resource::Cycles, Some(56u64)),
        (Resource::StateBytes, Some(20)),
        (Resource::Hashes, Some(2)),
        (Resource::Transfers, None),
    ] {
        let charged = Demand::VRP_CLASSIFIER.amount(resource);
        let row = Row::new(format!("budget: the classifier as a program, {}", resource.name()), "");
        book.row(paper_if(row, printed).expected(charged), |row| {
            let needed = Demand::of(&verified(program()?)?, &Prices::VRP_CYCLES).amount(resource);
            Ok(row.measured(needed).at_most().note(
                "the verifier's worst case of a program that classifies as the paper's does; the router's \
                 own is no program, and is charged what the paper's needs: not less than this",
            ))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::forwarders::interpreted;
    use super::*;
    use longwire_bench::rig::FrameSpec;
    use longwire_program::verify;

    const SEGMENT: FrameSpec = FrameSpec { protocol: 6, flags: 0x10, ports: [1024, 80], ..FrameSpec::UDP };

    /// Return value for a segment, where each flow of the table has these addresses and ports.
    fn returned(key: &[u8], change: impl Fn(&mut [u8])) -> u64 {
        let entry = [key, &77u32.to_le_bytes(), &[0; 4]].concat();
        let mut frame = SEGMENT.frame();
        change(&mut frame);
        interpreted(&program().unwrap(), &entry.repeat(TABLE / entry.len()), &SEGMENT, &mut frame)
            .unwrap()
            .returned
    }

    #[test]
    fn it_classifies() {
        let frame = SEGMENT.frame();
        let key = &frame[26..38];
        assert_eq!(returned(key, |_| ()), 77);
        for byte in 0..key.len() {
            let mut other = key.to_vec();
            other[byte] ^= 1;
            assert_eq!(returned(&other, |_| ()), 2, "byte {byte} of the key");
        }
        // A wrong checksum, and a right one with a length that the frame does not have.
        assert_eq!(returned(key, |frame| frame[24] ^= 1), 0);
        let longer = |frame: &mut [u8]| {
            frame[16] += 1;
            frame[24] -= 1;
        };
        assert_eq!(returned(key, longer), 0);
        assert_eq!(returned(key, |frame| frame[23] = 17), 2, "no TCP");
        assert_eq!(returned(key, |frame| frame[12] = 0x86), 2, "no IPv4");
    }

    #[test]
    fn it_needs_no_more_than_the_router_charges() {
        let need = Demand::of(&verify(program().unwrap()).unwrap(), &Prices::VRP_CYCLES);
        let resources = [Resource::Cycles, Resource::Transfers, Resource::Hashes, Resource::StateBytes];
        assert_eq!(resources.map(|resource| need.amount(resource)), [52, 5, 2, 20]);
    }
}
