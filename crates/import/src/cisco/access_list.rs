//! Standard and extended access lists of IOS configurations, by number or by name.
//!
//! ```text
//! access-list 3 permit 10.0.0.0 0.255.255.255                  a standard list looks at the source only
//! access-list 101 deny tcp any host 192.0.2.1 range 137 139    an extended one at both ends
//! ip access-list extended inACL                                its lines follow, indented or not
//!  10 permit udp 10.0.0.0 0.0.255.255 eq domain any log        the number says its place in the list
//! ```
//!
//! A one in a wildcard mask is a bit that is not looked at. What no line permits is denied. Passed over are
//! remarks, comments, lists that are not of IPv4 ([`OTHER_LISTS`]), settings of lists ([`SETTINGS`]), and
//! commands that do not begin with the words of a list; a line with `permit` or `deny` that stands in no list
//! is refused.

use super::entry::{Entry, entry};
use super::list::{List, is_extended};
use super::object_group::ObjectGroups;
use super::texts::commands;
use crate::ImportError;
use crate::address::AddressFamily;
use crate::conditions::Fault;
use crate::limits::MOST_LIST_RULES;
use crate::ruleset::{ChainPolicy, Decision, ImportedRules};
use crate::text::{Line, Word, place, shown};
use std::collections::{BTreeMap, HashMap};

/// How strictly to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessListOptions {
    /// Lines that cannot be kept are left out and reported, instead of an error for all.
    pub lenient: bool,
}

/// An access list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessList {
    /// Its number or name.
    pub name: String,
    /// Whether its lines look at more than the source.
    pub extended: bool,
    /// Its first line.
    pub line: u32,
    /// Its rules; what no line permits is denied.
    pub rules: ImportedRules,
}

/// Reads all access lists of a configuration, in the order in which they start.
///
/// # Errors
/// The first line of an access list that is none, or that means more than a rule can say; a last line without
/// an end that is not `end`, as the configuration may be cut there.
pub fn access_lists(text: &[u8], options: &AccessListOptions) -> Result<Vec<AccessList>, ImportError> {
    let mut left = MOST_LIST_RULES;
    let rows = |list| rows(list, &mut left, options.lenient);
    let configuration = configuration(text, options.lenient)?;
    match configuration.unclear.into_iter().next() {
        Some(error) => Err(error),
        None => configuration.lists.into_iter().map(rows).collect(),
    }
}

/// A list as rows of a table; `left` is how many rows there may still be.
fn rows(list: List, left: &mut usize, lenient: bool) -> Result<AccessList, ImportError> {
    // A list without lines lets everything pass in IOS; nobody writes one for that.
    let default = if list.is_empty() && list.refused.is_empty() { None } else { Some(false) };
    let (mut decisions, mut refused) = (Vec::new(), Vec::new());
    for entry in list.entries() {
        match regions(entry, *left) {
            Ok(regions) => {
                *left -= regions.len();
                decisions.extend(regions);
            }
            Err(error) if lenient => refused.push(error),
            Err(error) => return Err(error),
        }
    }
    let mut rules = ImportedRules::of(AddressFamily::V4, decisions, default);
    rules.policy = default.map(|_| ChainPolicy {
        line: list.line,
        words: format!("what no line of the list {} permits is denied", shown(&list.name)),
    });
    rules.refused = list.refused;
    rules.refused.extend(refused);
    Ok(AccessList { name: list.name, extended: list.extended, line: list.line, rules })
}

/// The rows of a line.
fn regions(entry: &Entry, most: usize) -> Result<Vec<Decision>, ImportError> {
    let mut decisions = Vec::new();
    for conditions in &entry.packets {
        let regions = conditions.regions(most - decisions.len()).map_err(|fault| {
            let what = match fault {
                Fault::TooMany => format!("the lists make more than {MOST_LIST_RULES} rules"),
                Fault::Mixed(_) | Fault::NoPorts => "two groups meet in no range, prefix or mask".to_owned(),
            };
            ImportError::new(entry.line, 1, what, "use smaller object groups")
        })?;
        let (allow, log, line) = (Some(entry.allow), entry.log, entry.line);
        let decision = |region| Decision { region, allow, log, line, text: entry.text.clone() };
        decisions.extend(regions.into_iter().map(decision));
    }
    Ok(decisions)
}

/// What a configuration says about packets.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    /// The lists, in the order in which they start.
    pub(crate) lists: Vec<List>,
    /// Where lists are asked, in the order of the lines.
    pub(crate) access_groups: Vec<AccessGroup>,
    /// What stands outside of lists and cannot be kept.
    pub(crate) refused: Vec<ImportError>,
    /// Lines that may be about lists, and of which it is not known what they mean there.
    pub(crate) unclear: Vec<ImportError>,
}

/// A list that an interface asks about its packets: `ip access-group NAME in|out`.
#[derive(Debug)]
pub(crate) struct AccessGroup {
    pub(crate) interface: String,
    pub(crate) list: String,
    /// Whether it is asked about packets that leave.
    pub(crate) out: bool,
    /// Where it stands, and its text.
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) text: String,
}

/// Reads the lists of a configuration, and where they are asked.
pub(crate) fn configuration(text: &[u8], lenient: bool) -> Result<Configuration, ImportError> {
    let commands = commands(text)?;
    let mut groups = ObjectGroups::default();
    for line in &commands {
        let words: Vec<Word<'_>> = line.words().collect();
        groups.line(*line, &words);
    }
    let mut lists = Lists {
        lenient,
        groups,
        configuration: Configuration::default(),
        numbers: HashMap::new(),
        interfaces: Vec::new(),
        access_groups: BTreeMap::new(),
    };
    let mut mode = Mode::Elsewhere;
    let mut last = "";
    for line in commands {
        last = line.text;
        let words: Vec<Word<'_>> = line.words().collect();
        mode = lists.line(mode, line, &words)?;
    }
    if text.last().is_some_and(|byte| *byte != b'\n') && last.trim_end() != "end" {
        let (line, column) = place(text, text.len());
        let what = "the last line has no end: the configuration may be cut off here";
        return Err(ImportError::new(line, column, what, "end the line if it is whole"));
    }
    let mut access_groups: Vec<AccessGroup> = lists.access_groups.into_values().collect();
    access_groups.sort_by_key(|group| group.line);
    Ok(Configuration { access_groups, ..lists.configuration })
}

/// Where in a configuration a line stands.
#[derive(Clone, Copy)]
enum Mode {
    /// Behind `ip access-list …`: lines are of this list, indented or not, until another command or `exit`.
    List(usize),
    /// Behind the start of a list of another kind, of which lines with `permit` and `deny` are as well.
    OtherList,
    /// Behind `interface NAME`, of this number; whether its lines are indented. Where they are not, they end
    /// with the next interface, `exit` or a list.
    Interface(usize, bool),
    /// Anywhere else: a line with `permit` or `deny` has no meaning.
    Elsewhere,
}

/// The starts of lists whose lines say `permit` or `deny` and are not about IPv4 packets.
const OTHER_LISTS: [[&str; 2]; 8] = [
    ["ipv6", "access-list"],
    ["mac", "access-list"],
    ["arp", "access-list"],
    ["ip", "community-list"],
    ["ip", "extcommunity-list"],
    ["ip", "prefix-list"],
    ["ipv6", "prefix-list"],
    ["ip", "as-path"],
];

/// What stands behind `ip access-list` or `access-list` and says nothing about packets: how often logs are
/// written, how lists are kept in memory, and how long lines last that users open (`dynamic`).
const SETTINGS: [&str; 4] = ["log-update", "logging", "compiled", "dynamic-extended"];

/// Commands outside of lists that block, permit or change packets as well, and what they do.
const DECIDING: [(&str, &str); 12] = [
    ("ipv6 traffic-filter", "asks a list of IPv6"),
    ("ip nat", "translates addresses (NAT)"),
    ("ip inspect", "lets answers of connections pass"),
    ("ip verify", "drops packets by their source"),
    ("zone-member security", "drops packets between zones"),
    ("service-policy", "limits, drops or marks classes of packets"),
    ("vlan access-map", "drops packets of a VLAN"),
    ("vlan filter", "drops packets of a VLAN"),
    ("ip policy", "sends packets another way, or drops them"),
    ("ip local policy", "sends packets another way, or drops them"),
    ("ip options drop", "drops packets with options of IP"),
    ("cts role-based", "drops packets by their security groups"),
];

/// The words that begin lines of lists that decide something.
const LINES: [&str; 4] = ["permit", "deny", "evaluate", "dynamic"];

const NO_LIST: &str = "put it behind the line `ip access-list standard|extended NAME` of its list";

const SHAPE: &str = "a line is written `access-list NUMBER permit|deny …`";

struct Lists {
    lenient: bool,
    groups: ObjectGroups,
    configuration: Configuration,
    /// The lists by name.
    numbers: HashMap<String, usize>,
    /// The names of interfaces that have lines of their own.
    interfaces: Vec<String>,
    /// Where lists are asked, by the name of the interface, and whether about packets that leave.
    access_groups: BTreeMap<(String, bool), AccessGroup>,
}

impl Lists {
    /// `access-list NUMBER …`: a line of a list. Those of other protocols are passed over.
    fn numbered_list(&mut self, line: Line<'_>, words: &[Word<'_>]) -> Result<(), ImportError> {
        let Some((name, rest)) = words.split_first() else {
            self.note_unclear(line.error_at_end("the number of the list is missing", SHAPE));
            return Ok(());
        };
        match self.numbered(*name) {
            Ok(Some(list)) => self.entry(list, line, None, rest)?,
            Ok(None) => {}
            Err(error) => self.note_unclear(error),
        }
        Ok(())
    }

    /// `ip access-list …`: where the lines behind it stand.
    fn named_list(&mut self, line: Line<'_>, words: &[Word<'_>]) -> Mode {
        match words.first().map_or("", |word| word.text) {
            setting if SETTINGS.contains(&setting) => Mode::Elsewhere,
            "resequence" => {
                if let Err(error) = self.resequence(line, words) {
                    self.note_unclear(error);
                }
                Mode::Elsewhere
            }
            // Asked by `cts role-based`.
            "role-based" => Mode::OtherList,
            _ => match self.named(line, words) {
                Ok(list) => Mode::List(list),
                Err(error) => {
                    self.note_unclear(error);
                    Mode::OtherList
                }
            },
        }
    }

    /// The list of a number; none for lists of other protocols.
    fn numbered(&mut self, name: Word<'_>) -> Result<Option<usize>, ImportError> {
        Ok(is_extended(name)?.map(|extended| self.list(name.text, extended, name.line)))
    }

    /// `ip access-list resequence NAME FIRST STEP`: the lines of a list get these numbers.
    fn resequence(&mut self, line: Line<'_>, words: &[Word<'_>]) -> Result<(), ImportError> {
        let [_, name, first, step] = words else {
            let shape = "write `ip access-list resequence NAME FIRST STEP`";
            return Err(line.error_at_end("the line has not the words of new numbers", shape));
        };
        let list = self.numbers.get(name.text).map(|list| &mut self.configuration.lists[*list]);
        let missing = || name.error(format!("there is no list `{}`", shown(name.text)), "remove the line");
        list.ok_or_else(missing)?.resequence(*first, *step)
    }

    fn named(&mut self, line: Line<'_>, words: &[Word<'_>]) -> Result<usize, ImportError> {
        const SHAPE: &str = "a list by name starts with `ip access-list standard|extended NAME`";
        let [kind, name] = words else {
            return Err(line.error_at_end("the line has not the words of a list's start", SHAPE));
        };
        let extended = match kind.text {
            "standard" => false,
            "extended" => true,
            _ => return Err(kind.error(format!("`{}` is no kind of list", shown(kind.text)), SHAPE)),
        };
        let list = self.list(name.text, extended, line.number);
        let above = &self.configuration.lists[list];
        if above.extended != extended {
            let what = format!("the list `{}` is of the other kind on line {}", shown(name.text), above.line);
            return Err(name.error(what, "give one of them another name"));
        }
        Ok(list)
    }

    fn list(&mut self, name: &str, extended: bool, line: u32) -> usize {
        if let Some(index) = self.numbers.get(name) {
            return *index;
        }
        let (name, lists) = (name.to_owned(), &mut self.configuration.lists);
        self.numbers.insert(name.clone(), lists.len());
        lists.push(List::new(name, extended, line));
        lists.len() - 1
    }

    /// Reads a line where it stands, and says where the next one does.
    fn line(&mut self, mode: Mode, line: Line<'_>, words: &[Word<'_>]) -> Result<Mode, ImportError> {
        let [first, rest @ ..] = words else { return Ok(mode) };
        let lower = |word: &Word<'_>| word.text.to_ascii_lowercase();
        let (command, second) = (lower(first), rest.first().map(lower).unwrap_or_default());
        let indented = line.text.starts_with([' ', '\t']);
        let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        let of_list = |word: &str| word == "remark" || LINES.contains(&word);
        let is_command = |command: &str| {
            let mut words = words.iter();
            command.split(' ').all(|own| words.next().is_some_and(|word| word.text.eq_ignore_ascii_case(own)))
        };
        match (&*command, &*second) {
            (comment, _) if comment.starts_with('!') => Ok(mode),
            ("end" | "exit", "") => Ok(Mode::Elsewhere),
            ("access-list", setting) if SETTINGS.contains(&setting) => Ok(Mode::Elsewhere),
            ("access-list", _) => {
                self.numbered_list(line, rest)?;
                Ok(Mode::Elsewhere)
            }
            ("ip", "access-list") => Ok(self.named_list(line, &rest[1..])),
            ("interface", _) => Ok(self.interface(rest)),
            ("ip", "access-group") => {
                self.access_group(mode, line, words, false);
                Ok(mode)
            }
            _ if let Some((words, does)) = DECIDING.iter().find(|(words, _)| is_command(words)) => {
                let what = format!("`{words}` {does}, which is not read here");
                self.refuse(first.error(what, "remove the line, if the answers need not include it"));
                Ok(mode)
            }
            ("no" | "default", _) => self.taken_away(mode, line, first, rest),
            _ if OTHER_LISTS.iter().any(|start| start[..] == [&*command, &*second]) => Ok(Mode::OtherList),
            ("ip", short) if is_short(short, "access-list") => {
                self.note_unclear(shortened(&rest[0], "access-list"));
                Ok(Mode::OtherList)
            }
            ("ip", short) if is_short(short, "access-group") => {
                self.refuse(shortened(&rest[0], "access-group"));
                Ok(mode)
            }
            (short, _) if is_short(short, "access-list") => {
                self.note_unclear(shortened(first, "access-list"));
                Ok(Mode::Elsewhere)
            }
            (short, _) if is_short(short, "interface") => {
                self.refuse(shortened(first, "interface"));
                Ok(self.interface(rest))
            }
            (word, next) => {
                let is_entry = of_list(word) || (is_number(word) && (of_list(next) || next.is_empty()));
                let short = LINES.iter().find(|whole| whole.starts_with(word) && **whole != word);
                match mode {
                    Mode::List(list) if let Some(whole) = short => {
                        self.configuration.lists[list].refuse_number(None);
                        self.refuse_in(list, shortened(first, whole))?;
                        Ok(mode)
                    }
                    Mode::List(list) if indented || is_entry || is_number(word) => {
                        let (number, words) =
                            if is_number(word) { (Some(*first), rest) } else { (None, words) };
                        self.entry(list, line, number, words)?;
                        Ok(mode)
                    }
                    Mode::Elsewhere | Mode::Interface(..)
                        if is_entry && !matches!(word, "remark" | "dynamic") =>
                    {
                        let what = format!("`{}` stands in no list", shown(first.text));
                        self.note_unclear(first.error(what, NO_LIST));
                        Ok(mode)
                    }
                    Mode::Interface(interface, false) => Ok(Mode::Interface(interface, indented)),
                    _ if indented || is_entry => Ok(mode),
                    _ => Ok(Mode::Elsewhere),
                }
            }
        }
    }

    /// The interface whose lines follow.
    fn interface(&mut self, rest: &[Word<'_>]) -> Mode {
        let words: Vec<&str> = rest.iter().map(|word| word.text).collect();
        self.interfaces.push(words.join(" "));
        Mode::Interface(self.interfaces.len() - 1, false)
    }

    /// `ip access-group NAME in|out`; `taken_away` where `no` stands before it.
    fn access_group(&mut self, mode: Mode, line: Line<'_>, words: &[Word<'_>], taken_away: bool) {
        const SHAPE: &str = "write `ip access-group NAME in|out` behind an interface";
        let Mode::Interface(interface, _) = mode else {
            return self.refuse(words[0].error("`access-group` stands behind no interface", SHAPE));
        };
        let [_, _, list, direction] = words else {
            return self.refuse(line.error_at_end("the line has not the words of an access group", SHAPE));
        };
        let out = match direction.text {
            "in" => false,
            "out" => true,
            other => {
                return self.refuse(direction.error(format!("`{}` is no direction", shown(other)), SHAPE));
            }
        };
        let interface = self.interfaces[interface].clone();
        // An interface has one list a direction; a later line takes the place of one before.
        let key = (interface.clone(), out);
        if taken_away {
            self.access_groups.remove(&key);
            return;
        }
        let (list, text) = (list.text.to_owned(), line.text.trim().to_owned());
        let (line, column) = (words[0].line, words[0].column);
        self.access_groups.insert(key, AccessGroup { interface, list, out, line, column, text });
    }

    /// Keeps a line of which it is not known what it means for lists.
    fn note_unclear(&mut self, error: ImportError) {
        self.configuration.unclear.push(error);
    }

    /// Keeps what is wrong outside of lists: lists do not depend on it.
    fn refuse(&mut self, error: ImportError) {
        self.configuration.refused.push(error);
    }

    /// A line that takes something away: a list, a line of the list that it stands in, or a list of an
    /// interface. What is not there may be taken away, where it is a list.
    fn taken_away(
        &mut self,
        mode: Mode,
        line: Line<'_>,
        first: &Word<'_>,
        rest: &[Word<'_>],
    ) -> Result<Mode, ImportError> {
        const ADVICE: &str = "write the list as it is to be, without lines that take others away";
        let words: Vec<&str> = rest.iter().map(|word| word.text).collect();
        let unclear = || {
            let what = format!("what `{}` takes away is not known here", shown(line.text.trim()));
            first.error(what, ADVICE)
        };
        match words[..] {
            ["ip", short, ..] if is_short(short, "access-list") => {
                self.note_unclear(shortened(&rest[1], "access-list"));
                return Ok(Mode::Elsewhere);
            }
            [short, ..] if is_short(short, "access-list") => {
                self.note_unclear(shortened(&rest[0], "access-list"));
                return Ok(Mode::Elsewhere);
            }
            ["ip", short, ..] if is_short(short, "access-group") => {
                self.refuse(shortened(&rest[1], "access-group"));
                return Ok(mode);
            }
            _ => {}
        }
        let name = match words[..] {
            ["access-list", name] | ["ip", "access-list", "standard" | "extended", name]
                if first.text == "no" =>
            {
                if let Some(list) = self.numbers.get(name) {
                    self.configuration.lists[*list].clear();
                }
                return Ok(Mode::Elsewhere);
            }
            ["object-group", ..] => return Ok(Mode::Elsewhere),
            ["access-list", name, ..] => Some(name),
            ["ip", "access-list", _, name, ..] => Some(name),
            ["access-list", ..] | ["ip", "access-list", ..] => None,
            ["ip", "access-group", ..] => {
                self.access_group(mode, line, rest, true);
                return Ok(mode);
            }
            _ if matches!(mode, Mode::List(_)) => None,
            _ if line.text.starts_with([' ', '\t']) => return Ok(mode),
            _ => return Ok(Mode::Elsewhere),
        };
        match (name, mode) {
            (Some(name), _) if !self.numbers.contains_key(name) => Ok(Mode::Elsewhere),
            (None, Mode::List(list)) if first.text == "no" => {
                let taken = self.entry_taken_away(list, line, first, rest);
                taken.or_else(|error| self.refuse_in(list, error)).map(|()| mode)
            }
            _ => {
                self.note_unclear(unclear());
                Ok(mode)
            }
        }
    }

    /// `no NUMBER` or `no permit …`: the line goes that has the number, or that says the same.
    fn entry_taken_away(
        &mut self,
        list: usize,
        line: Line<'_>,
        first: &Word<'_>,
        rest: &[Word<'_>],
    ) -> Result<(), ImportError> {
        let own = &mut self.configuration.lists[list];
        let missing = || first.error("no line above is the one that is taken away", "remove this line");
        let number = match rest {
            [number] if number.text.bytes().all(|byte| byte.is_ascii_digit()) => own.number(*number)?,
            [first, ..] if first.text == "remark" => return Ok(()),
            _ => {
                let entry = entry(line, rest, own.extended, &self.groups)?.ok_or_else(missing)?;
                own.same(&entry).ok_or_else(missing)?
            }
        };
        own.remove(number).ok_or_else(missing)
    }

    fn refuse_in(&mut self, list: usize, error: ImportError) -> Result<(), ImportError> {
        if !self.lenient {
            return Err(error);
        }
        self.configuration.lists[list].refused.push(error);
        Ok(())
    }

    fn entry(
        &mut self,
        list: usize,
        line: Line<'_>,
        number: Option<Word<'_>>,
        words: &[Word<'_>],
    ) -> Result<(), ImportError> {
        let own = &mut self.configuration.lists[list];
        let entered = entry(line, words, own.extended, &self.groups).and_then(|entry| {
            let place = number.map(|number| own.number(number).map(|place| (number, place))).transpose()?;
            let Some(entry) = entry else { return Ok(()) };
            match place {
                Some((number, place)) if own.has(place) => {
                    let what = format!("the list has a line {place} already");
                    return Err(number.error(what, "number each line once"));
                }
                Some((_, place)) => own.insert(place, entry),
                None => own.push(entry),
            }
            Ok(())
        });
        entered.or_else(|error| {
            self.configuration.lists[list].refuse_number(number);
            self.refuse_in(list, error)
        })
    }
}

/// Whether a word is the start of another one, as IOS takes it from a keyboard.
fn is_short(word: &str, whole: &str) -> bool {
    let word = word.to_ascii_lowercase();
    (3..whole.len()).contains(&word.len()) && whole.starts_with(&word)
}

fn shortened(word: &Word<'_>, whole: &str) -> ImportError {
    word.error(format!("`{}` may mean `{whole}`", shown(word.text)), "write the word out")
}
