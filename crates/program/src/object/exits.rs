//! Programs that entries of maps may name, as configured at installation.

use super::values::set_first;
use super::{Object, ObjectError};
use crate::{ExitKind, MAX_EXITS, MapSpec, Program};
use std::sync::Arc;

impl Object<'_> {
    /// Sets the programs that entries of devmaps and cpumaps with 8-byte values may name, by number from 1 in
    /// this order, for programs linked after this.
    ///
    /// # Errors
    /// If there is no such program, it does not run there, no map can name it, or there are too many.
    pub fn set_exits(&mut self, names: &[impl AsRef<str>]) -> Result<(), ObjectError> {
        if names.len() > MAX_EXITS {
            return Err(ObjectError::TooManyExits(names.len()));
        }
        let mut exits = Vec::with_capacity(names.len());
        for name in names {
            let body = self.named(name.as_ref())?;
            let (section, kind) = self.section_of(body)?;
            let program = self.bodies[body].name.clone();
            let Some(kind) = kind else {
                return Err(ObjectError::NoExit { program, section: section.into() });
            };
            let names_it = |spec: &MapSpec| spec.has_exits() && ExitKind::of_map(spec.kind) == Some(kind);
            if !self.specs.iter().any(names_it) {
                return Err(ObjectError::Unnamed { program, map: kind.map() });
            }
            exits.push((kind, body));
        }
        for spec in Arc::make_mut(&mut self.specs).iter_mut().filter(|spec| spec.has_exits()) {
            let own = |kind| ExitKind::of_map(spec.kind) == Some(kind);
            let name = |&(kind, body): &(ExitKind, usize)| match own(kind) {
                true => self.bodies[body].name.clone(),
                false => Box::default(),
            };
            spec.exits = exits.iter().map(name).collect();
        }
        self.exits = exits;
        Ok(())
    }

    /// Sets the first entries of a devmap or cpumap, by index from 0: the first four bytes of each, and the
    /// named program, one of [`Object::set_exits`]. A map without `max_entries` gets as many.
    ///
    /// # Errors
    /// If there is no such map, it has fewer entries, or can't name such a program.
    pub fn set_targets(&mut self, map: &str, targets: &[(u32, Option<&str>)]) -> Result<(), ObjectError> {
        let is_it = |spec: &MapSpec| *spec.name == *map && ExitKind::of_map(spec.kind).is_some();
        let place =
            self.specs.iter().position(is_it).ok_or_else(|| ObjectError::NoTargets { name: map.into() })?;
        let spec = &mut Arc::make_mut(&mut self.specs)[place];
        let mut initial = Vec::with_capacity(targets.len() * spec.value_size as usize);
        for &(first, exit) in targets {
            let value = spec.leading(first, exit).filter(|_| exit.is_none() || spec.has_exits());
            let value = value.ok_or_else(|| ObjectError::NoSuchExit {
                map: map.into(),
                program: exit.unwrap_or_default().into(),
            })?;
            initial.extend_from_slice(&value[..(spec.value_size as usize).min(value.len())]);
        }
        let beyond = "beyond its last: name fewer, or make max_entries greater";
        set_first(spec, targets.len(), initial.into(), beyond)
    }

    /// The program of this name, wherever it runs: for inspection and pricing.
    ///
    /// # Errors
    /// As [`Object::program`].
    pub fn any_program(&self, name: &str) -> Result<Program, ObjectError> {
        let first = self.named(name)?;
        match self.section_of(first)? {
            (_, Some(_)) => self.together(first),
            (_, None) => self.program(name),
        }
    }
}
