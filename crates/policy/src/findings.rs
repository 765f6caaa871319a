//! What `check` asks of a policy: rules that never decide, redundant rules, and pairs whose order decides.

use crate::decisions::AnalysisFault;
use crate::limits::MOST_PAIRS;
use crate::lines::RuleIndex;
use crate::listed::ListedPolicy;
use crate::model::Policy;
use crate::order::OrderFindings;
use crate::unreached::UnreachedCause;
use crate::why::DecidedPolicy;
use std::collections::HashSet;

/// What is found out about a policy, by its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFindings {
    /// The lines: [`Policy::lines`].
    pub lines: Vec<Vec<(usize, usize)>>,
    /// The lines none of whose rules decides about a packet, or sends one on.
    pub unreached: Vec<usize>,
    /// Why the first of them do not.
    pub causes: Vec<UnreachedCause>,
    /// What is found out about the order of lines, or why it was not looked for.
    pub order: Result<OrderFindings, AnalysisFault>,
}

/// What answers.
enum Analysis<'p> {
    Decided(Box<DecidedPolicy<'p>>),
    Listed(Box<ListedPolicy<'p>>),
}

/// Finds out what lines do to each other; of each kind at most `most` are told.
///
/// # Errors
/// The policy cannot be walked, or it is too much.
pub fn findings(policy: &Policy, most: usize) -> Result<PolicyFindings, AnalysisFault> {
    let analysis = match ListedPolicy::of(policy)? {
        Some(listed) => Analysis::Listed(Box::new(listed)),
        None => Analysis::Decided(Box::new(DecidedPolicy::new(policy)?)),
    };
    analysis.findings(policy, most)
}

impl Analysis<'_> {
    fn findings(mut self, policy: &Policy, most: usize) -> Result<PolicyFindings, AnalysisFault> {
        let lines = policy.lines();
        let rules: HashSet<RuleIndex> = match &mut self {
            Analysis::Decided(decided) => decided.unreached()?,
            Analysis::Listed(listed) => listed.unreached()?,
        }
        .into_iter()
        .collect();
        // A part of a line may be impossible, such as a reset for a protocol without resets.
        let unreached = |line: &usize| lines[*line].iter().all(|rule| rules.contains(rule));
        let unreached: Vec<usize> = (0..lines.len()).filter(unreached).collect();
        let mut causes = Vec::new();
        for line in unreached.iter().take(most) {
            causes.push(match &mut self {
                Analysis::Decided(decided) => decided.why_unreached(&lines[*line])?,
                Analysis::Listed(listed) => listed.why_unreached(&lines[*line])?,
            });
        }
        let order = match &mut self {
            Analysis::Decided(decided) => decided.order_findings(most),
            Analysis::Listed(listed) => listed.order_findings(most, MOST_PAIRS),
        };
        Ok(PolicyFindings { lines, unreached, causes, order })
    }
}
