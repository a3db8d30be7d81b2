from __future__ import annotations

from mcspark.acs.columns import (
    COLUMNS,
    FURTHER_ATTRIBUTES,
    GROUP_ATTRIBUTES,
    KEY,
    Kind,
    disagreements,
    locate,
)
from mcspark.acs.tasks import TASKS

HEADER_2018 = ["RT", "SERIALNO", "SPORDER", "PUMA", "ST", "RELP", "JWTR", "AGEP"]
HEADER_2019 = ["SERIALNO", "SPORDER", "PUMA", "ST", "RELSHIPP", "JWTRNS", "AGEP"]
HEADER_2024 = ["SERIALNO", "SPORDER", "PUMA", "STATE", "RELSHIPP", "JWTRNS", "AGEP"]


def test_each_year_spells_the_canonical_names_its_own_way() -> None:
    assert locate(HEADER_2018)["STATE"] == "ST"
    assert locate(HEADER_2018)["RELSHIPP"] == "RELP"
    assert locate(HEADER_2018)["JWTRNS"] == "JWTR"
    assert locate(HEADER_2019)["STATE"] == "ST"
    assert locate(HEADER_2019)["RELSHIPP"] == "RELSHIPP"
    assert locate(HEADER_2024)["STATE"] == "STATE"
    assert "RT" not in locate(HEADER_2018), "unknown columns are ignored"


def test_the_newest_name_wins_where_a_file_has_both() -> None:
    assert locate(["ST", "STATE"])["STATE"] == "STATE"


def test_renamed_columns_agree_between_years_and_recoded_ones_do_not() -> None:
    found = disagreements([locate(HEADER_2018), locate(HEADER_2024)])
    assert "STATE" not in found
    assert found["RELSHIPP"] == "the files mix the code lists of RELP and RELSHIPP"
    assert "RELSHIPP" not in disagreements([locate(HEADER_2019), locate(HEADER_2024)])


def test_columns_that_some_or_all_files_lack_are_told_apart() -> None:
    found = disagreements([locate(HEADER_2024), locate([*HEADER_2024, "COW"])])
    assert found["COW"] == "1 of 2 files lack it"
    assert found["POBP"] == "no file has it"
    assert "AGEP" not in found


def test_identifiers_are_strings_and_everything_else_is_an_integer() -> None:
    codes = {name for name, column in COLUMNS.items() if column.kind is Kind.code}
    assert codes == {"SERIALNO", "STATE", "PUMA", "POWPUMA"}


def test_every_column_that_is_used_is_known() -> None:
    used = {*KEY, *GROUP_ATTRIBUTES, *FURTHER_ATTRIBUTES}
    for task in TASKS.values():
        used |= {*task.features, *task.needs}
    assert used <= set(COLUMNS)


def test_no_attribute_gives_the_label_away() -> None:
    assert not {"PINCP", "JWMNP", "POVPIP"} & {*GROUP_ATTRIBUTES, *FURTHER_ATTRIBUTES}


def test_a_description_names_the_years_of_earlier_names() -> None:
    assert COLUMNS["STATE"].describe() == "STATE (ST until 2022)"
    assert COLUMNS["AGEP"].describe() == "AGEP"
