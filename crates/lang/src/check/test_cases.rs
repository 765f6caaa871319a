//! Tests of the program text: their packets become bytes, their expectations numbers.

use super::Checker;
use super::types::Type;
use crate::ast::{self, Expectation, Item, TestStep};
use crate::diagnostic::Diagnostic;
use crate::testcase::{CaseStep, Expected, TestCase};
use ir::source::Span;
use std::collections::HashMap;

/// Ports of a test that does not say how many.
const DEFAULT_PORTS: u16 = 5;

impl Checker<'_> {
    /// The tests of the main file.
    pub(crate) fn tests(&mut self, file: &ast::File) -> Vec<TestCase> {
        let mut cases = Vec::new();
        let mut names: HashMap<&str, Span> = HashMap::new();
        for item in &file.items {
            if let Item::Test(test) = item {
                if let Some(first) = names.insert(&test.name, test.span) {
                    self.report(
                        Diagnostic::error(
                            "E0101",
                            format!("the test \"{}\" is declared twice", test.name),
                            test.span,
                            "declared again here",
                        )
                        .place(first, "declared first here"),
                    );
                }
                cases.push(self.test_case(test));
            }
        }
        cases
    }

    fn test_case(&mut self, test: &ast::Test) -> TestCase {
        let mut case =
            TestCase { name: test.name.clone(), ports: DEFAULT_PORTS, steps: Vec::new(), span: test.span };
        let mut time = 0u64;
        let mut entered = false;
        for step in &test.steps {
            match step {
                TestStep::Ports(count) => {
                    let number = self.port(count);
                    if number == 0 {
                        self.error("E0620", "a test has at least one port", count.span, "this is zero");
                    }
                    let most = !ir::FROM_HOST;
                    if self.program.names_host && number > most {
                        self.error(
                            "E0626",
                            format!("a gateway whose program names `from_host` has at most {most} ports"),
                            count.span,
                            "these are more",
                        );
                    }
                    case.ports = number.max(1);
                }
                TestStep::Packet { port, from_host, packet, at, span } => {
                    let number = self.port(port);
                    entered = true;
                    self.diagnostics.check_port(u128::from(number), port.span);
                    if number > case.ports {
                        self.report(
                            Diagnostic::error(
                                "E0622",
                                format!("the test has no port {number}"),
                                port.span,
                                format!("ports are 1 to {}", case.ports),
                            )
                            .help(format!("say how many there are: `ports {number}`")),
                        );
                    }
                    if *from_host && !self.program.names_host {
                        self.error(
                            "E0625",
                            "packets of the machine pass this program by",
                            *span,
                            "no decoder or stage that packets reach names `from_host`",
                        );
                    }
                    if let Some(at) = at {
                        self.diagnostics.check_unit(at);
                        let at_time = self.constant(at, &Type::Time).unwrap_or(0) as u64;
                        if at_time < time {
                            self.error(
                                "E0621",
                                "time never goes back",
                                at.span,
                                "a step before this one is later",
                            );
                        }
                        time = time.max(at_time);
                    }
                    if let Some(made) = self.made_packet(packet) {
                        let (from_host, bytes) = (*from_host, made.bytes);
                        case.steps.push(CaseStep::Packet { port: number, from_host, bytes, time });
                    }
                }
                TestStep::After(delay) => {
                    self.diagnostics.check_unit(delay);
                    let delay = self.constant(delay, &Type::Time).unwrap_or(0) as u64;
                    time = time.saturating_add(delay);
                    case.steps.push(CaseStep::Advance(time));
                }
                TestStep::Expect(expectation, span) => {
                    let of_state = matches!(expectation, Expectation::Entries(..) | Expectation::Count(..));
                    let of_time =
                        matches!(expectation, Expectation::Event(..) | Expectation::Out(..)) && time > 0;
                    if !entered && !of_state && !of_time {
                        self.error(
                            "E0623",
                            "nothing has come in yet that this could be about",
                            *span,
                            "no packet stands before this",
                        );
                    }
                    if let Some(expected) = self.expected(expectation) {
                        case.steps.push(CaseStep::Expect(expected, *span));
                    }
                }
            }
        }
        case
    }

    fn port(&mut self, expr: &ast::Expr) -> u16 {
        self.constant(expr, &Type::Port).unwrap_or(1) as u16
    }

    fn expected(&mut self, expectation: &Expectation) -> Option<Expected> {
        Some(match expectation {
            Expectation::Send(port) => Expected::Send(self.port(port)),
            Expectation::Flood => Expected::Flood,
            Expectation::Multicast(ports) => {
                let mut ports: Vec<u16> = ports.iter().map(|port| self.port(port)).collect();
                ports.sort_unstable();
                Expected::Multicast(ports)
            }
            Expectation::Drop(reason) => Expected::Drop(reason.text.clone()),
            Expectation::Punt(reason) => Expected::Punt(reason.text.clone()),
            Expectation::Out(port, packet) => {
                let port = self.port(port);
                Expected::Out(port, self.made_packet(packet)?.bytes)
            }
            Expectation::Entries(table, count) => {
                let table = self.table_named(table)?;
                Expected::Entries(table.0 as u32, self.constant(count, &Type::Uint(64))? as u64)
            }
            Expectation::Count(counter, cell, packets) => {
                let id = self.named("counter", counter, |names| &names.counters)?;
                let cell = match cell {
                    Some(cell) => self.constant(cell, &Type::Uint(32))? as u32,
                    None => 0,
                };
                if cell >= self.program.counters[id as usize].size {
                    self.error(
                        "E0515",
                        format!("`{}` has no cell {cell}", counter.text),
                        counter.span,
                        "cells are numbered from 0",
                    );
                    return None;
                }
                Expected::Count(id, cell, self.constant(packets, &Type::Uint(64))? as u64)
            }
            Expectation::Event(name, args) => {
                let event = self.named("event", name, |names| &names.events)?;
                let types = self.program.types_of(&self.program.events[event].params);
                let takes = format!("`{}`", name.text);
                if !self.diagnostics.takes(&takes, types.len(), args.len(), name.span) {
                    return None;
                }
                let values = args.iter().zip(&types).filter_map(|(arg, ty)| self.constant(arg, ty)).collect();
                Expected::Event(event as u32, values)
            }
        })
    }
}
