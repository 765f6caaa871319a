//! The family of the models of tables, which is the reference: slow, and simple enough to be believed.

use super::matching::PatternSearch;
use super::table_set::TableFamily;
use tables::exact::{ExactSpec, ExactSpecError};
use tables::lpm::{Lpm, LpmSpec, Prefix};
use tables::patterns::SearchPattern;
use tables::rules::{Rule, RulesBuildError, RulesSpec};

/// The models: slow, and simple enough to be the reference.
pub struct Reference;

impl TableFamily for Reference {
    type Exact = tables::exact::ExactModel;
    type Prefixes = tables::lpm::LpmModel;
    type Rules = tables::rules::Linear;
    type Patterns = tables::patterns::PatternsModel;
    const ENDS_AT_ONCE: bool = true;

    fn exact(spec: ExactSpec) -> Result<Self::Exact, ExactSpecError> {
        tables::exact::ExactModel::new(spec)
    }

    fn prefixes(
        spec: LpmSpec,
        prefixes: Vec<(Prefix, u32)>,
    ) -> Result<Self::Prefixes, tables::lpm::LpmBuildError> {
        let mut made = tables::lpm::LpmModel::new(spec)?;
        for (prefix, value) in prefixes {
            made.insert(prefix, value)?;
        }
        Ok(made)
    }

    fn rules(spec: &RulesSpec, rules: Vec<(u64, Rule, u32)>) -> Result<Self::Rules, RulesBuildError> {
        tables::rules::Linear::build(spec, &rules)
    }
}

impl PatternSearch for tables::patterns::PatternsModel {
    fn build(patterns: &[SearchPattern]) -> Result<Self, tables::patterns::PatternsBuildError> {
        tables::patterns::PatternsModel::build(patterns)
    }

    fn first(&self, bytes: &[u8]) -> Option<u32> {
        self.first(bytes).map(|found| found.pattern)
    }

    fn each(&self, bytes: &[u8], found: &mut dyn FnMut(u32)) {
        self.each(bytes, &mut |occurrence| found(occurrence.pattern));
    }
}
