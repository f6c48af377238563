//! Settings of shared media.

use super::changing::{CurrentObject, LiveObjects, ObjectKind};
use super::settings::{SettingPair, Settings, keyed, of_ramps, quantity};
use longwire_block::change::{Blocks, Edit};
use longwire_control::{Kind, SetError, Settable};
use longwire_engine::{MediumRef, Target};
use longwire_link::MEDIA;
use longwire_scenario::{Plan, medium_edit};

/// The media of a run.
pub type LiveMedia = LiveObjects<MediumKind>;

/// Media, whose settings are those of their kinds.
#[derive(Debug)]
pub struct MediumKind;

impl LiveMedia {
    /// The media of `plan`, with the engine's references.
    pub fn new(plan: &Plan, refs: &[MediumRef]) -> Self {
        let names = plan.media.iter().map(|medium| medium.name.to_string()).collect();
        let planned = plan.media.iter().map(longwire_scenario::Medium::blocks).collect();
        let targets = refs.iter().map(|&medium| Target::Medium(medium)).collect();
        Self::made(MediumKind, names, targets, (planned, (0..plan.media.len() as u32).collect()))
    }
}

impl ObjectKind for MediumKind {
    fn kind(&self) -> Kind {
        Kind::Medium
    }

    fn edits(&self, medium: &CurrentObject<'_>, pairs: &[&SettingPair]) -> Result<Vec<Edit>, SetError> {
        keyed(pairs, |texts| medium_edit(medium.blocks, texts).map(|edit| vec![edit]))
    }

    fn settings(&self, blocks: &Blocks) -> Settings {
        let each = blocks.iter().flat_map(|(spec, values)| spec.params.iter().zip(values.as_slice()));
        each.map(|(param, value)| (param.name.to_string(), value.print(param.kind))).collect()
    }

    fn settable(&self) -> Vec<Settable> {
        let mut all: Vec<Settable> = Vec::new();
        for param in MEDIA.iter().flat_map(|spec| spec.params) {
            Settable::new(param.name, param.help, param.takes(), quantity(param)).add_to(&mut all);
        }
        all.into_iter().chain(of_ramps()).collect()
    }
}
