//! The section `.BTF.ext`: source lines of instructions, and locations that the loader is to relocate
//! (CO-RE).

use super::{Btf, BtfError, header, part, word};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of the header up to both parts that are read.
const HEADER: usize = 24;
/// Minimum bytes of a record.
const RECORD: usize = 16;

/// Types with a fixed layout, that of the context or of protocol headers: the compiler's values are right.
const FIXED: &str = "\
    xdp_md ethhdr vlan_hdr vlan_ethhdr arphdr iphdr ipv6hdr ipv6_opt_hdr in6_addr tcphdr udphdr icmphdr \
    icmp6hdr";

/// An instruction's source line.
#[derive(Debug, Clone)]
pub(crate) struct LineInfo {
    /// Offset of the instruction in its section, in bytes.
    pub offset: u32,
    pub file: Arc<str>,
    pub line: u32,
}

/// An instruction that depends on the layout of a type.
#[derive(Debug, Clone)]
pub(crate) struct CoreRelocation {
    /// Offset of the instruction in its section, in bytes.
    pub offset: u32,
    /// The type's name.
    pub name: Box<str>,
}

/// Both by section, in order of their offsets, without relocations that have no effect.
#[derive(Debug, Default)]
pub(crate) struct Ext {
    pub lines: BTreeMap<Box<str>, Vec<LineInfo>>,
    pub relocations: BTreeMap<Box<str>, Vec<CoreRelocation>>,
}

impl Ext {
    /// Parses the section `.BTF.ext` of the object with these types.
    pub(crate) fn parse(section: &[u8], btf: &Btf<'_>) -> Result<Self, BtfError> {
        let (length, parts) = header(section, HEADER)?;
        let mut ext = Self::default();
        let mut files: BTreeMap<u32, Arc<str>> = BTreeMap::new();
        records(part(section, length, parts[2], parts[3])?, |section, record| {
            let name = record[1];
            let file = files.entry(name).or_insert_with(|| btf.text(name).trim_start_matches("./").into());
            let info = LineInfo { offset: record[0], file: file.clone(), line: record[3] >> 10 };
            ext.lines.entry(btf.text(section).into()).or_default().push(info);
        })?;
        records(part(section, length, parts[4], parts[5])?, |section, record| {
            let name = btf.type_name(record[1]);
            if !FIXED.split(' ').any(|fixed| fixed == name) {
                let relocation = CoreRelocation { offset: record[0], name: name.into() };
                ext.relocations.entry(btf.text(section).into()).or_default().push(relocation);
            }
        })?;
        ext.lines.values_mut().for_each(|lines| lines.sort_by_key(|line| line.offset));
        ext.relocations.values_mut().for_each(|all| all.sort_by_key(|one| one.offset));
        Ok(ext)
    }
}

/// Calls `each` with the section name and the first numbers of every record.
fn records(part: &[u8], mut each: impl FnMut(u32, [u32; 4])) -> Result<(), BtfError> {
    if part.is_empty() {
        return Ok(());
    }
    let cut_off = |offset| BtfError { offset, what: "a record is cut off" };
    let size = word(part, 0).ok_or(cut_off(0))? as usize;
    if !(RECORD..=256).contains(&size) {
        return Err(BtfError { offset: 0, what: "records have an impossible size" });
    }
    let mut at = 4;
    while at < part.len() {
        let (name, count) = word(part, at).zip(word(part, at + 4)).ok_or(cut_off(at))?;
        at += 8;
        let length = (count as usize).checked_mul(size).ok_or(cut_off(at))?;
        let all = at.checked_add(length).and_then(|end| part.get(at..end)).ok_or(cut_off(at))?;
        for record in all.chunks_exact(size) {
            each(name, std::array::from_fn(|i| word(record, i * 4).unwrap_or(0)));
        }
        at += length;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_end_within_their_part() {
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        let part = words(&[16, 7, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 10, 11, 12, 13]);
        let mut seen = Vec::new();
        assert_eq!(records(&part, |name, record| seen.push((name, record[0]))), Ok(()));
        assert_eq!(seen, [(7, 1), (7, 5), (9, 10)]);
        for end in (1..part.len()).filter(|end| ![4, 44].contains(end)) {
            assert!(records(&part[..end], |_, _| {}).is_err(), "{end}");
        }
        assert!(records(&words(&[16, 7, u32::MAX]), |_, _| {}).is_err());
        assert!(records(&words(&[0, 7, 1]), |_, _| {}).is_err());
    }
}
