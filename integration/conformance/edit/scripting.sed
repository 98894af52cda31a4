# The unit runs twice: its scripts by EVAL, and as functions of FUNCTION LOAD, which is left out. Both runs have the
# same names of tests.
s/^foreach is_eval {0 1} {/foreach is_eval {1} {/
# While a script runs for too long, calls on its keys get BUSY, and PING does not.
/Timedout\|SHUTDOWN NOSAVE can kill/,/^    }/ {
    s/\[catch {r ping} e\]/[catch {r get k} e]/
    s/catch {r ping} e/catch {r get k} e/
}
# There is no debugger of scripts.
/r script debug sync/d
# Commands that scripts may not call cannot be allowed here.
/r debug set-disable-deny-scripts/d
# Another command: GEOADD.
s/'GEOADD', 'Sicily', .*'Catania')/'ZADD', 'Sicily', 1, 'Palermo')/
s/cmdrstat geoadd/cmdrstat zadd/
