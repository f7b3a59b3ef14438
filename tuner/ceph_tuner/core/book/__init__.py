"""The book: for each regime the settings that hold in it, and a state machine that switches between them.

Page            settings for a regime with their evidence (`page.py`)
Book            all pages of a cluster, as they are stored (`book.py`)
check_page      whether a cluster takes its settings (`page_check.py`)
choose          which page holds in a regime (`choice.py`)
decide          what is next; the executor carries it out, under lock and journal (`state_machine.py`)
"""
