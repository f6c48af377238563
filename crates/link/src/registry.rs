//! All blocks a link can have, and a link's configuration made of them.

use longwire_block::{Spec, SpecError, Values};

/// Makes a stage: an enum over its blocks, each in a file of its own, with the calls that the link makes on them.
///
/// A block is a type with `const SPEC: Spec`, `fn build(&Values, Dice) -> Self` and `fn change(&mut self, &Values)`,
/// and the stage's calls as methods.
macro_rules! stage {
    (
        $(#[$doc:meta])* $name:ident $blocks:tt
        $($(#[$call_doc:meta])* fn $call:ident(&mut self $(, $arg:ident: $type:ty)*) $(-> $ret:ty)?;)*
    ) => {
        $crate::registry::stage!(@enum $blocks $name $(#[$doc])*);

        impl $name {
            $($crate::registry::stage!(@call $blocks $(#[$call_doc])* $call($($arg: $type),*) ($($arg),*) $(-> $ret)?);)*
        }
    };
    (@call { $($variant:ident = $block:ty,)+ }
        $(#[$doc:meta])* $call:ident($($arg:ident: $type:ty),*) $pass:tt $(-> $ret:ty)?
    ) => {
        $(#[$doc])*
        #[inline]
        pub fn $call(&mut self $(, $arg: $type)*) $(-> $ret)? {
            match self { $(Self::$variant(block) => block.$call $pass,)+ }
        }
    };
    (@enum { $($variant:ident = $block:ty,)+ } $name:ident $(#[$doc:meta])*) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub enum $name {
            $(#[doc = concat!("See [`", stringify!($block), "`].")] $variant($block),)+
        }

        impl $name {
            /// The rows of this stage's blocks; the first is the default of its key.
            pub const SPECS: &'static [&'static longwire_block::Spec] = &[$(&<$block>::SPEC),+];

            /// The block that `spec` describes, or none if it is of another stage.
            pub fn build(
                spec: &longwire_block::Spec,
                values: &longwire_block::Values,
                dice: impl FnOnce() -> longwire_block::Dice,
            ) -> Option<Self> {
                $(if (spec.key, spec.kind) == (<$block>::SPEC.key, <$block>::SPEC.kind) {
                    return Some(Self::$variant(<$block>::build(values, dice())));
                })+
                None
            }

            /// The row of this block.
            pub fn spec(&self) -> &'static longwire_block::Spec {
                match self { $(Self::$variant(_) => &<$block>::SPEC,)+ }
            }

            /// Takes new parameters; what the block has gathered so far stays.
            pub fn change(&mut self, values: &longwire_block::Values) {
                match self { $(Self::$variant(block) => block.change(values),)+ }
            }
        }
    };
}
pub(crate) use stage;

/// The rows of all blocks, in the order of the stages.
pub fn registry() -> Vec<&'static Spec> {
    use crate::{delay::Delay, filter::Filter, impair::Impair, queue::Queue, transmit::Transmit};
    [Filter::SPECS, Impair::SPECS, Queue::SPECS, Transmit::SPECS, Delay::SPECS].concat()
}

/// What a link is made of: at most one block a key; keys not named have their default.
#[derive(Debug, Clone, Default)]
pub struct LinkConfig {
    blocks: Vec<(&'static Spec, Values)>,
    /// Whether the link keeps a histogram of lateness.
    pub histogram: bool,
}

impl LinkConfig {
    /// A link of these blocks.
    pub fn new(blocks: Vec<(&'static Spec, Values)>, histogram: bool) -> Self {
        Self { blocks, histogram }
    }

    /// The same with the key of `spec` set to `values`.
    pub fn with(mut self, spec: &'static Spec, values: Values) -> Self {
        self.blocks.retain(|(other, _)| other.key != spec.key);
        self.blocks.push((spec, values));
        self
    }

    /// The same with `key` set from text, by the default block of that key: for tests and short forms.
    ///
    /// # Errors
    /// If there is no such key or the text is not what its first parameter takes.
    pub fn with_text(self, key: &str, text: &str) -> Result<Self, SpecError> {
        let Some(spec) = registry().into_iter().find(|spec| spec.key == key) else {
            let known = registry().iter().map(|spec| spec.key).collect::<Vec<_>>().join(", ");
            return Err(SpecError::Unknown { key: "link", kind: "any", name: key.into(), known });
        };
        let values = Values::read(spec, &[(spec.params[0].name, text)])?;
        Ok(self.with(spec, values))
    }

    /// The blocks that were named.
    pub fn blocks(&self) -> &[(&'static Spec, Values)] {
        &self.blocks
    }

    /// The block for `key`, if one was named.
    pub fn block(&self, key: &str) -> Option<&(&'static Spec, Values)> {
        self.blocks.iter().find(|(spec, _)| spec.key == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_unique_and_their_defaults_can_be_read() {
        let rows = registry();
        for spec in &rows {
            assert_eq!(rows.iter().filter(|s| (s.key, s.kind) == (spec.key, spec.kind)).count(), 1);
            assert!(!spec.summary.is_empty() && !spec.source.is_empty() && !spec.params.is_empty());
            for param in spec.params {
                assert!(!param.help.is_empty(), "{} {}", spec.kind, param.name);
                if let Some(default) = param.default {
                    let value = param.read(default).unwrap();
                    assert_eq!(param.read(&value.print(param.kind)).unwrap(), value);
                }
            }
        }
    }

    #[test]
    fn a_key_is_set_once() {
        let config =
            LinkConfig::default().with_text("loss", "1 %").unwrap().with_text("loss", "2 %").unwrap();
        assert_eq!(config.blocks().len(), 1);
        assert!(LinkConfig::default().with_text("los", "1 %").unwrap_err().to_string().contains("loss"));
    }
}
