//! Licence expressions: as much of SPDX as packages use (OR, AND, WITH, parentheses, and the old
//! `MIT/Apache-2.0` for OR). WITH binds closest, then AND, then OR.

use anyhow::{Result, bail};

/// A parsed licence expression.
#[derive(Debug, PartialEq)]
pub enum Expression {
    /// One licence, with its exception if it has one: `Apache-2.0 WITH LLVM-exception`.
    Licence(String),
    /// All of them hold at once.
    All(Vec<Expression>),
    /// Any of them may be chosen.
    Any(Vec<Expression>),
}

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
        let tokens: Vec<&str> = spaced.split_whitespace().collect();
        let mut rest = tokens.as_slice();
        let expression = any(&mut rest)?;
        match rest.first() {
            None => Ok(expression),
            Some(token) => bail!("'{token}' is out of place in the licence '{text}'"),
        }
    }

    /// Whether it can be met with allowed licences alone.
    pub fn is_allowed(&self, allowed: &dyn Fn(&str) -> bool) -> bool {
        match self {
            Expression::Licence(name) => allowed(name),
            Expression::All(parts) => parts.iter().all(|part| part.is_allowed(allowed)),
            Expression::Any(parts) => parts.iter().any(|part| part.is_allowed(allowed)),
        }
    }
}

fn any(rest: &mut &[&str]) -> Result<Expression> {
    let mut parts = vec![all(rest)?];
    while take(rest, "OR") {
        parts.push(all(rest)?);
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::Any(parts) })
}

fn all(rest: &mut &[&str]) -> Result<Expression> {
    let mut parts = vec![one(rest)?];
    while take(rest, "AND") {
        parts.push(one(rest)?);
    }
    Ok(if parts.len() == 1 { parts.remove(0) } else { Expression::All(parts) })
}

fn one(rest: &mut &[&str]) -> Result<Expression> {
    if take(rest, "(") {
        let inner = any(rest)?;
        if !take(rest, ")") {
            bail!("a parenthesis is not closed");
        }
        return Ok(inner);
    }
    let licence = name(rest)?;
    if take(rest, "WITH") {
        return Ok(Expression::Licence(format!("{licence} WITH {}", name(rest)?)));
    }
    Ok(Expression::Licence(licence))
}

fn name(rest: &mut &[&str]) -> Result<String> {
    match rest.split_first() {
        Some((first, others)) if !matches!(*first, "(" | ")" | "OR" | "AND" | "WITH") => {
            *rest = others;
            Ok((*first).to_owned())
        }
        Some((first, _)) => bail!("expected a licence, got '{first}'"),
        None => bail!("expected a licence, got the end"),
    }
}

fn take(rest: &mut &[&str], token: &str) -> bool {
    match rest.split_first() {
        Some((first, others)) if *first == token => {
            *rest = others;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(expression: &str, allow: &[&str]) -> bool {
        Expression::parse(expression).unwrap().is_allowed(&|name| allow.contains(&name))
    }

    #[test]
    fn or_needs_one_and_and_needs_all() {
        assert!(allowed("MIT OR Apache-2.0", &["MIT"]));
        assert!(!allowed("MIT OR Apache-2.0", &["ISC"]));
        assert!(allowed("MIT AND ISC", &["MIT", "ISC"]));
        assert!(!allowed("MIT AND ISC", &["MIT"]));
        assert!(allowed("MIT/Apache-2.0", &["Apache-2.0"]));
    }

    #[test]
    fn and_binds_closer_than_or_unless_parentheses_say_otherwise() {
        assert!(allowed("MIT OR Apache-2.0 AND Unicode-3.0", &["MIT"]));
        assert!(!allowed("(MIT OR Apache-2.0) AND Unicode-3.0", &["MIT"]));
        assert!(allowed("(MIT OR Apache-2.0) AND Unicode-3.0", &["MIT", "Unicode-3.0"]));
        assert!(allowed("((MIT))", &["MIT"]));
    }

    #[test]
    fn an_exception_belongs_to_its_licence() {
        let llvm = "Apache-2.0 WITH LLVM-exception";
        assert!(!allowed(llvm, &["Apache-2.0"]));
        assert!(allowed(llvm, &[llvm]));
        assert!(allowed("Apache-2.0 WITH LLVM-exception OR MIT", &["MIT"]));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "MIT OR", "AND MIT", "(MIT", "MIT)", "MIT Apache-2.0", "MIT WITH", "()"] {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
    }
}
